import { Factories } from '@cyclonedx/cyclonedx-library/Contrib/License';
import { ComponentType, HashAlgorithm } from '@cyclonedx/cyclonedx-library/Enums';
import {
  Bom,
  Component,
  ComponentRepository,
  type OptionalComponentProperties,
} from '@cyclonedx/cyclonedx-library/Models';
import { JSON as Json, JsonSerializer } from '@cyclonedx/cyclonedx-library/Serialize';
import { Spec1dot6, Version } from '@cyclonedx/cyclonedx-library/Spec';
import { JsonStrictValidator } from '@cyclonedx/cyclonedx-library/Validation';
import { PackageURL } from 'packageurl-js';
import { ToolchainError } from '../errors.js';
import { chartImages } from '../images/chart-images.js';
import { COMMANDS } from '../images/context.js';
import { ZIG_VERSION } from '../portable-build.js';
import { productVersion } from '../version.js';
import { type DebianPackages, type ImageContents, imageContents } from './image-contents.js';
import { type NpmPackage, npmPackages } from './npm-packages.js';

/** A part of the product that is delivered as one file. */
interface Part {
  readonly type: ComponentType;
  readonly name: string;
  /** Workspaces whose bundles it has. */
  readonly workspaces: readonly string[];
  readonly further: readonly Component[];
}

interface BillOptions {
  /** Undefined: the image is not built here, and only our part of it is listed. */
  readonly contents: Readonly<Record<keyof typeof COMMANDS, ImageContents | undefined>>;
  /** Version of the cluster, for the image of kube-scheduler. */
  readonly kubernetes: string;
}

/**
 * The SBOM of this tree. Packages of Debian are listed for images that are built here.
 * @param kubernetes version of the cluster
 */
export async function productBill(kubernetes: string): Promise<string> {
  const { registry, tag, node, control } = chartImages();
  const read = async (name: string) => {
    const image = `${registry}/${name}:${tag}`;
    const contents = await imageContents(image);
    if (contents === undefined)
      console.log(`${image} is not built here: the SBOM lists no package of its Debian.`);
    return contents;
  };
  const contents = { node: await read(node), control: await read(control) };
  return billOfMaterials({ contents, kubernetes });
}

/**
 * The SBOM of images, chart and kubectl plugin in CycloneDX's JSON. The same input gives the same
 * text, because it has neither a date nor a serial number.
 */
async function billOfMaterials({ contents, kubernetes }: BillOptions): Promise<string> {
  const bom = new Bom();
  const version = productVersion();
  bom.metadata.component = named(ComponentType.Application, 'nvidia-virtual', version);
  const parts = [imagePart('node', contents.node), imagePart('control', contents.control), PLUGIN];
  for (const part of parts) bom.components.add(await partComponent(part, version));
  const { kubeScheduler, redis } = chartImages();
  for (const image of [`${kubeScheduler}:v${kubernetes}`, redis])
    bom.components.add(foreignImage(image));
  const text = new JsonSerializer(new Json.Normalize.Factory(Spec1dot6)).serialize(bom, {
    sortLists: true,
    space: 2,
  });
  const error = await new JsonStrictValidator(Version.v1dot6).validate(text);
  if (error !== null)
    throw new ToolchainError(`The SBOM violates CycloneDX 1.6: ${JSON.stringify(error)}`);
  return `${text}\n`;
}

const PLUGIN: Part = {
  type: ComponentType.Application,
  name: 'kubectl-gpu_usage',
  workspaces: ['kubectl-plugin'],
  further: [nodeComponent(process.versions.node)],
};

function imagePart(name: keyof typeof COMMANDS, contents: ImageContents | undefined): Part {
  return {
    type: ComponentType.Container,
    name: chartImages()[name],
    workspaces: Object.values(COMMANDS[name]),
    further: [
      ...(contents === undefined ? [] : baseComponents(contents)),
      // Its libc++ is linked into libraries and programs for the node.
      ...(name === 'node' ? [component('pypi', 'ziglang', ZIG_VERSION)] : []),
    ],
  };
}

function baseComponents({ criu, node, ...base }: ImageContents): Component[] {
  return [base, ...(criu === undefined ? [] : [criu])]
    .flatMap(debianComponents)
    .concat(nodeComponent(node));
}

function debianComponents({ release, packages }: DebianPackages): Component[] {
  return packages.map(({ name, version, architecture }) =>
    component('deb', name, version, {
      namespace: 'debian',
      qualifiers: { arch: architecture, distro: release },
    }),
  );
}

async function partComponent(part: Part, version: string): Promise<Component> {
  const { type, name, workspaces, further } = part;
  const parts = [...(await npmPackages(workspaces)).map(npmComponent), ...further];
  // References are unique in the whole SBOM, and several parts have the same packages.
  for (const { bomRef, purl } of parts) bomRef.value = `${name}#${purl}`;
  return named(type, name, version, { components: new ComponentRepository(parts) });
}

function named(
  type: ComponentType,
  name: string,
  version: string,
  options: OptionalComponentProperties = {},
): Component {
  return new Component(type, name, { version, bomRef: name, ...options });
}

function npmComponent({ name, version, license, integrity }: NpmPackage): Component {
  const [scope, own = ''] = name.includes('/') ? name.split('/') : [undefined, name];
  const made = component('npm', own, version, { namespace: scope, group: scope });
  if (license !== undefined) made.licenses.add(LICENSES.makeFromString(license));
  const [, digest] = /^sha512-(.*)$/.exec(integrity ?? '') ?? [];
  if (digest !== undefined)
    made.hashes.set(HashAlgorithm['SHA-512'], Buffer.from(digest, 'base64').toString('hex'));
  return made;
}

/** An expression of several licences is listed by its text. */
const LICENSES = new Factories.LicenseFactory(() => {
  throw new RangeError('expressions are not parsed');
});

function nodeComponent(version: string): Component {
  return component('generic', 'node', version);
}

function foreignImage(image: string): Component {
  const [, repository = '', tag = ''] = /^(.*):([^:]*)$/.exec(image) ?? [];
  const purl = new PackageURL('oci', undefined, repository.replace(/^.*\//, ''), undefined, {
    repository_url: repository,
    tag,
  });
  return named(ComponentType.Container, repository, tag, { purl: purl.toString() });
}

interface ComponentOptions {
  readonly namespace?: string | undefined;
  readonly qualifiers?: Readonly<Record<string, string>>;
  readonly group?: string | undefined;
}

function component(
  type: string,
  name: string,
  version: string,
  { namespace, qualifiers, group }: ComponentOptions = {},
): Component {
  const purl = new PackageURL(type, namespace, name, version, qualifiers).toString();
  const options = { version, purl, ...(group !== undefined && { group }) };
  return new Component(ComponentType.Library, name, options);
}

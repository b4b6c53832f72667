import { readPath } from './request.js';

const ROOT = '/apis/usage.nvidia-virtual.io/v1alpha1';

test.each([
  [ROOT, { what: 'resources' }],
  [`${ROOT}/`, { what: 'resources' }],
  ['/openapi/v3', { what: 'openapi' }],
  [`${ROOT}/podgpuusages`, { what: 'pods', namespace: undefined, name: undefined }],
  [`${ROOT}/namespaces/a/podgpuusages`, { what: 'pods', namespace: 'a', name: undefined }],
  [`${ROOT}/namespaces/a/podgpuusages/x%2Ey`, { what: 'pods', namespace: 'a', name: 'x.y' }],
  [`${ROOT}/nodegpuusages/n`, { what: 'nodes', namespace: undefined, name: 'n' }],
])('%s', (path, target) => {
  expect(readPath(path)).toEqual(target);
});

test.each([
  '/',
  '/apis',
  '/apis/usage.nvidia-virtual.io',
  '/api/v1/pods',
  '/toString',
  `${ROOT}/pods`,
  `${ROOT}/podgpuusages/name`,
  `${ROOT}/dashboard/page.js`,
  `${ROOT}/namespaces/a/dashboard/page.js`,
  `${ROOT}/namespaces/a/nodegpuusages`,
  `${ROOT}/namespaces/a/podgpuusages/x/log`,
  `${ROOT}/nodegpuusages/n/status`,
  `${ROOT}/nodegpuusages/%zz`,
  '/apis/other.io/v1alpha1/podgpuusages',
])('%s does not exist', (path) => {
  expect(readPath(path)).toBeUndefined();
});

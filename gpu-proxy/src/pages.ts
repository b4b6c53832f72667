import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { configurationPage } from './configuration/page.js';

/** Prints the pages of docs/ that come from declarations in this package. */
const DOCUMENTS = path.resolve(import.meta.dirname, '../../docs');
writeFileSync(path.join(DOCUMENTS, 'configuration.md'), configurationPage());

import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { configurationPage } from './configuration/page.js';
import { metricsPage } from './metrics/page.js';

/** Prints the pages of docs/ that come from declarations in this package. */
const DOCUMENTS = path.resolve(import.meta.dirname, '../../docs');
const PAGES = { 'configuration.md': configurationPage(), 'metrics.md': metricsPage() };
for (const [file, text] of Object.entries(PAGES)) writeFileSync(path.join(DOCUMENTS, file), text);

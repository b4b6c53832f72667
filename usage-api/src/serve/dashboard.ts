import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import path from 'node:path';

const FILES = path.join(import.meta.dirname, '../../dashboard');

interface Page {
  readonly html: string;
  readonly policy: string;
}

/** Answers with the dashboard: one document, which loads nothing but answers of this API. */
export function answerDashboard(response: ServerResponse, { html, policy } = PAGE): void {
  response
    .writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'content-length': Buffer.byteLength(html),
      'content-security-policy': policy,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-cache',
    })
    .end(html);
}

/** Names of pods and nodes are hostile, so only this script and this style may run. */
function readPage(): Page {
  const style = read('page.css');
  const script = read('dist/page.js');
  const html = read('page.html')
    .replace('/* page.css */', () => style)
    .replace('/* page.js */', () => script);
  const policy = [
    "default-src 'none'",
    `script-src '${digest(script)}'`,
    `style-src '${digest(style)}'`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
  return { html, policy };
}

function read(file: string): string {
  return readFileSync(path.join(FILES, file), 'utf8');
}

function digest(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}

const PAGE = readPage();

/** `npm run docs`: writes the reference. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { folder, referencePages } from './pages.ts';

const pages = await referencePages();
rmSync(folder, { recursive: true, force: true });
for (const [name, text] of pages) {
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
process.exit(0);

/** `npm run docs`: writes the reference. `-- --cut VERSION`, at a release: notes that the settings without a version came with this one. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { folder, referencePages } from './pages.ts';
import { writeVersion } from './since.ts';

const { cut } = parseArgs({ options: { cut: { type: 'string' } } }).values;
const pages = await referencePages();
if (cut === undefined) {
  rmSync(folder, { recursive: true, force: true });
  for (const [name, text] of pages) {
    const path = join(folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
} else {
  const settings = [...pages].filter(([name]) => name.startsWith('settings/')).map(([, text]) => text);
  writeVersion(
    cut,
    settings.flatMap((text) => Array.from(text.matchAll(/^## (.*)$/gm), ([, path]) => path!)),
  );
  console.log('Run `npm run docs` once more.');
}
process.exit(0);

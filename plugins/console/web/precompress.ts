/** A vite plugin that writes .br and .gz beside every text file of the build, so that serving costs no processor time. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Plugin } from 'vite';

const brotliAsync = promisify(brotliCompress);
const gzipAsync = promisify(gzip);

/** Files below this gain nothing that a packet would notice. */
const smallestBytes = 1024;

export function precompress(): Plugin {
  let folder = '';
  return {
    name: 'precompress',
    apply: 'build',
    configResolved(config) {
      folder = join(config.root, config.build.outDir);
    },
    async closeBundle() {
      const names = await readdir(folder, { recursive: true });
      // The page itself holds a nonce for each answer, so it is compressed, if at all, when it is served.
      const texts = names.filter((name) => /\.(js|css|svg|json)$/.test(name) && !name.includes('.vite'));
      for (const name of texts) await compressFile(join(folder, name));
    },
  };
}

async function compressFile(path: string): Promise<void> {
  const bytes = await readFile(path);
  if (bytes.length < smallestBytes) return;
  const brotli = await brotliAsync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  await writeFile(`${path}.br`, brotli);
  await writeFile(`${path}.gz`, await gzipAsync(bytes, { level: 9 }));
}

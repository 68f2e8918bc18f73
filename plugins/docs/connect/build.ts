/** Makes `connect.cjs`: the command `connect` with all that it needs, in one file that any Node from 20 on runs, also from a pipe. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { ClientProgram } from '../../../core/tools/client-programs.ts';

const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const out = path('../dist');

/** What the command reads of each program: code to copy is for pages. */
function settingsAlone(text: string): string {
  const all = Object.entries(JSON.parse(text) as Record<string, ClientProgram>);
  const kept = all.map(([id, { code: _code, links: _links, ...rest }]) => [id, rest]);
  return `export default ${JSON.stringify(Object.fromEntries(kept))};`;
}

// As the console's pages: without the build tools (--omit=dev), the file that is there stays.
const tools = await import('vite').catch(() => undefined);
if (tools === undefined) {
  console.error('connect: the build tools are not installed, so /docs/connect.cjs is not made again');
  process.exit();
}
await tools.build({
  configFile: false,
  logLevel: 'error',
  plugins: [
    {
      name: 'settings-alone',
      enforce: 'pre',
      load: (id) =>
        id.endsWith('config/clients.json') ? { code: settingsAlone(readFileSync(id, 'utf8')), moduleType: 'js' } : null,
    },
  ],
  ssr: { noExternal: true },
  build: {
    ssr: path('../../../core/process/connect/alone.ts'),
    outDir: out,
    emptyOutDir: true,
    target: 'node20',
    minify: true,
    rolldownOptions: { output: { format: 'cjs', entryFileNames: 'connect.cjs', comments: false } },
  },
});

// Shells that read a file in an encoding of their own leave ASCII as it is.
const file = `${out}/connect.cjs`;
const ascii = readFileSync(file, 'utf8').replace(
  /[^\t\n\r\x20-\x7e]/g,
  (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
);
const least =
  'if(process.versions.node.split(".")[0]<20){console.error("connect needs Node 20 or later");process.exit(1)}';
// The one package in the file; its licence asks for its notice in every copy.
const notice = readFileSync(fileURLToPath(new URL('../LICENSE', import.meta.resolve('yaml'))), 'utf8').trim();
writeFileSync(file, `/* yaml:\n${notice}\n*/\n${least}\n${ascii}`);

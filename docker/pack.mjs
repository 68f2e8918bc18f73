/** Makes `dist/`, what the npm package consists of: the same tree as JavaScript, since Node strips no types below node_modules. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const out = join(root, 'dist');
const pages = 'plugins/console/web';
const commandLine = 'core/process/main.ts';

if (!existsSync(join(root, pages, 'dist'))) {
  console.error('the web app is not built: npm run build:console');
  process.exit(1);
}
rmSync(out, { recursive: true, force: true });
for (const file of globSync(['core/**', 'plugins/**', 'config/*'], { cwd: root, withFileTypes: true })) {
  if (!file.isFile()) continue;
  const path = join(file.parentPath, file.name).slice(root.length);
  // Of the web app its pages alone; no pictures of the documents.
  if (path.startsWith(`${pages}/`) && !path.startsWith(`${pages}/dist/`)) continue;
  if (path.startsWith('plugins/console/pictures/')) continue;
  if (path.endsWith('.ts')) put(path.replace(/ts$/, 'js'), inJavaScript(readFileSync(join(root, path), 'utf8')));
  else copy(path);
}
declare();
// The code asks the file above it for the version.
const { name, version, type, engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
put('bin.js', binFor(name, engines.node.replace('>=', '')));
put('package.json', `${JSON.stringify({ name, version, type })}\n`);

/** The types of what authors of plugins import. */
function declare() {
  const compiler = join(root, 'node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [compiler, '-p', join(root, 'docker/declarations.json')], { stdio: 'inherit' });
  for (const file of globSync('**/*.d.ts', { cwd: out })) {
    const text = readFileSync(join(out, file), 'utf8');
    put(file, text.replace(/(['"])(\.{1,2}\/[\w./-]+)\.ts\1/g, '$1$2.js$1'));
  }
}

/** Loads the rest only where Node can read it. It is written so that a Node of ten years ago can read it. */
function binFor(command, least) {
  const [major, minor] = least.split('.');
  return `#!/usr/bin/env node
var node = process.versions.node.split('.').map(Number);
if (node[0] < ${major} || (node[0] === ${major} && node[1] < ${minor})) {
  console.error('${command} needs Node ${least} or later; this is Node ' + process.versions.node + '.');
  process.exitCode = 1;
} else {
  import('./${commandLine.replace(/ts$/, 'js')}');
}
`;
}

/** Types become spaces, so that lines and columns stay; modules are named by the ending that they have now. */
function inJavaScript(text) {
  return stripTypeScriptTypes(text).replace(/(['"`])((?:\.{1,2}|\$\{[\w.]+\})\/[\w./-]+)\.ts\1/g, '$1$2.js$1');
}

function put(path, text) {
  mkdirSync(dirname(join(out, path)), { recursive: true });
  writeFileSync(join(out, path), text, { mode: path === 'bin.js' ? 0o755 : 0o644 });
}

function copy(path) {
  mkdirSync(dirname(join(out, path)), { recursive: true });
  copyFileSync(join(root, path), join(out, path));
}

/** Copies the plugin `ollama` out of the gateway's tree: the same code, which imports the names that authors have, the stable ones first. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '../../..');
const entries = { index: 'model-gateway', domain: 'model-gateway/domain', kit: 'model-gateway/kit' };
const shared = /^import (type )?\{([^}]*)\} from '\.\.\/[^']+';\n/gm;

export function copyOutside(to: string): void {
  const from = join(root, 'plugins/ollama');
  mkdirSync(to, { recursive: true });
  for (const file of readdirSync(from)) {
    const text = readFileSync(join(from, file), 'utf8').replace(shared, (_whole, type = '', names: string) =>
      names
        .split(',')
        .map((name) => name.trim())
        .filter((name) => name !== '')
        .map((name) => `import ${type}{ ${name} } from '${moduleOf(name.replace(/^type /, ''))}';\n`)
        .join(''),
    );
    writeFileSync(join(to, file), text);
  }
}

/** The module from which authors import the name. */
function moduleOf(name: string): string {
  for (const [file, module] of Object.entries(entries)) {
    const text = readFileSync(join(root, `plugins/common/author/${file}.ts`), 'utf8');
    if ([...text.matchAll(/\{([^}]*)\} from/g)].some(([, list]) => list!.match(/\w+/g)!.includes(name))) return module;
  }
  // How a protocol shapes turns, tools and frames.
  return 'model-gateway/unstable';
}

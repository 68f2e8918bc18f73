/** Copies the plugin `ollama` out of the gateway's tree: the same code, which imports what the package offers to authors. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, normalize } from 'node:path';

const root = join(import.meta.dirname, '../../..');
const entries = ['index', 'domain', 'kit'] as const;

export function copyOutside(to: string): void {
  const offered = offers();
  const from = join(root, 'plugins/ollama');
  mkdirSync(to, { recursive: true });
  for (const file of readdirSync(from)) {
    const text = readFileSync(join(from, file), 'utf8').replace(/'(\.\.\/[^']+)'/g, (_whole, specifier: string) => {
      const module = normalize(join('plugins/ollama', specifier));
      const entry = offered.get(module);
      if (entry === undefined) throw new Error(`authors are not offered ${module}`);
      return entry === 'index' ? "'model-gateway'" : `'model-gateway/${entry}'`;
    });
    writeFileSync(join(to, file), text);
  }
}

/** The modules of the gateway, by the name under which authors import them. */
function offers(): Map<string, (typeof entries)[number]> {
  const folder = join(root, 'plugins/common/author');
  return new Map(
    entries.flatMap((entry) =>
      [...readFileSync(join(folder, `${entry}.ts`), 'utf8').matchAll(/from '(\.\.\/[^']+)'/g)].map(
        ([, specifier]) => [normalize(join('plugins/common/author', specifier!)), entry] as const,
      ),
    ),
  );
}

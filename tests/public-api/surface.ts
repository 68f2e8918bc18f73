/** What `model-gateway` offers to authors of plugins, as TypeScript declares it: each name with its kind, signature and docstring. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Node, SyntaxKind } from 'typescript/unstable/ast';
import { API, type Symbol as Named, type Project, SymbolFlags } from 'typescript/unstable/sync';

/** The stable modules, by the file in `plugins/common/author/` that says their names. */
const stableModules = {
  index: 'model-gateway',
  domain: 'model-gateway/domain',
  kit: 'model-gateway/kit',
  testing: 'model-gateway/testing',
} as const;
const author = 'plugins/common/author';

interface Offered {
  readonly name: string;
  readonly signature: string;
  /** Empty: there is none. */
  readonly documentation: string;
}

/** The names of the stable modules and of `model-gateway/unstable`, sorted. */
export interface Surface {
  readonly stable: ReadonlyMap<string, readonly Offered[]>;
  readonly unstable: ReadonlySet<string>;
}

export function readSurface(): Surface {
  const folder = mkdtempSync(join(tmpdir(), 'public-api-'));
  const compiler = resolve('node_modules/typescript/bin/tsc');
  execFileSync(process.execPath, [compiler, '-p', 'docker/declarations.json', '--noCheck', '--outDir', folder]);
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  const files = [...Object.keys(stableModules), 'unstable'].map((name) => join(folder, author, `${name}.d.ts`));
  const options = { module: 'nodenext', target: 'es2024', types: ['node'], skipLibCheck: true };
  const compilerOptions = { ...options, strict: true, noEmit: true, allowImportingTsExtensions: true };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }));
  const api = new API({ cwd: folder });
  try {
    const [project] = api.updateSnapshot({ openProjects: [join(folder, 'tsconfig.json')] }).getProjects();
    const namesOf = (file: string) => exportsOf(project!, join(folder, author, `${file}.d.ts`));
    const stable = Object.entries(stableModules).map(
      ([file, module]) => [module, namesOf(file).flatMap((named) => offered(project!, named))] as const,
    );
    return { stable: new Map(stable), unstable: new Set(namesOf('unstable').map(({ name }) => name)) };
  } finally {
    api.close();
    rmSync(folder, { recursive: true });
  }
}

function exportsOf(project: Project, file: string): readonly Named[] {
  const module = project.checker.getSymbolAtLocation(project.program.getSourceFile(file)!)!;
  return sorted(project.checker.getExportsOfModule(module));
}

function sorted(names: readonly Named[]): Named[] {
  return [...names].sort((one, other) => one.name.localeCompare(other.name, 'en'));
}

/** A namespace of the gateway's own is its members; one of a package is that package. */
function offered(project: Project, named: Named, within = ''): Offered[] {
  const { checker } = project;
  const target = named.flags & SymbolFlags.Alias ? checker.getAliasedSymbol(named) : named;
  const name = within + named.name;
  const own = (symbol: Named) => checker.getDocumentationCommentOfSymbol(symbol).trim();
  const [first] = target.declarations;
  const from = /node_modules\/(.*?)\/[^/]*$/.exec(first!.path)?.[1];
  // What is of a package is documented there.
  if (from !== undefined) return [{ name, signature: `export { ${name} } from '${from}';`, documentation: from }];
  if (target.flags & SymbolFlags.Module)
    return sorted(checker.getExportsOfModule(target)).flatMap((member) => offered(project, member, `${name}.`));
  const signature = target.declarations.map((declaration) => printed(project, declaration.resolve(project)!));
  return [{ name, signature: signature.join('\n'), documentation: own(target) }];
}

function printed(project: Project, node: Node): string {
  const text = project.emitter
    .printNode(node)
    .replace(/^export /, '')
    .replace(/^declare /, '');
  return node.kind === SyntaxKind.VariableDeclaration ? `const ${text};` : text;
}

/** The counters of a TypeScript declaration: reads interfaces and classes of `.d.ts` files as packages ship them. */
import { readFileSync } from 'node:fs';

interface Member {
  readonly name: string;
  readonly type: string;
}

/** Members by the qualified name of their interface. */
type Declared = ReadonlyMap<string, readonly Member[]>;

const opening = /^(?:export )?(?:declare )?(interface|class|namespace) (\w+)[^{]*\{\s*$/;
const member = /^(?:readonly )?(\w+)\??: (.+?)(;?)$/;

/** Interfaces, classes and types of these files; each member stands on lines of its own. */
export function declaredIn(files: readonly string[]): Declared {
  const all = new Map<string, Member[]>();
  for (const file of files) readInto(all, readFileSync(file, 'utf8'));
  return all;
}

function readInto(all: Map<string, Member[]>, text: string): void {
  // Indentation shows where a scope ends, whatever else stands in it.
  let scopes: { readonly name: string; readonly indent: number }[] = [];
  const path = (...names: string[]) => [...scopes.map(({ name }) => name), ...names].join('.');
  for (const raw of text.replaceAll(/^\s*\/\*[\s\S]*?\*\/\s*$/gm, '').split('\n')) {
    const line = raw.trim();
    if (line === '') continue;
    const indent = raw.length - raw.trimStart().length;
    scopes = scopes.filter((scope) => scope.indent < indent);
    const opened = opening.exec(line);
    const alias = /^(?:export )?(?:declare )?type (\w+) = (.+);$/.exec(line);
    const found = member.exec(line);
    const siblings = all.get(path());
    if (opened !== null) {
      scopes.push({ name: opened[2]!, indent });
      if (opened[1] !== 'namespace' && !all.has(path())) all.set(path(), []);
    } else if (alias !== null) all.set(path(alias[1]!), [{ name: '', type: alias[2]! }]);
    else if (found !== null && found[2] === '{') {
      siblings?.push({ name: found[1]!, type: path(found[1]!) });
      scopes.push({ name: found[1]!, indent });
      all.set(path(), []);
    } else if (found !== null && found[3] === ';') siblings?.push({ name: found[1]!, type: found[2]! });
  }
}

/** Paths of all numbers in a type, such as `details[].tokens`. Throws for a type that is not declared. */
export function countersOf(declared: Declared, name: string): string[] {
  if (!declared.has(name)) throw new Error(`no type ${name} is declared`);
  return [...new Set(pathsIn(declared, name, '', []))];
}

function pathsIn(declared: Declared, scope: string, path: string, above: readonly string[]): string[] {
  if (above.includes(scope)) return [];
  return declared.get(scope)!.flatMap(({ name, type }) => {
    const at = name === '' ? path : path === '' ? name : `${path}.${name}`;
    return inType(declared, scope, type, at, [...above, scope]);
  });
}

function inType(declared: Declared, scope: string, type: string, path: string, above: readonly string[]): string[] {
  const list = /^(?:Array<(.+)>|(\w[\w.]*)\[\])$/.exec(type);
  if (list !== null) return inType(declared, scope, (list[1] ?? list[2])!, `${path}[]`, above);
  return type.split('|').flatMap((part) => {
    const one = part.trim();
    if (one === 'number') return [path];
    if (part !== type && /[<[]/.test(one)) return inType(declared, scope, one, path, above);
    const target = resolved(declared, scope, one);
    return target === undefined ? [] : pathsIn(declared, target, path, above);
  });
}

/** A name is looked up from its scope outwards, then without the alias of an import. */
function resolved(declared: Declared, scope: string, name: string): string | undefined {
  if (!/^[A-Z]\w*(\.\w+)*$/.test(name) && !declared.has(name)) return undefined;
  for (let at = scope; at !== ''; at = at.split('.').slice(0, -1).join('.'))
    if (declared.has(`${at}.${name}`)) return `${at}.${name}`;
  if (declared.has(name)) return name;
  const last = name.split('.').at(-1)!;
  return declared.has(last) ? last : undefined;
}

/** An object with a number at each of these paths. */
export function sampleOf(paths: readonly string[]): Record<string, unknown> {
  const sample: Record<string, unknown> = {};
  for (const [index, path] of paths.entries()) {
    let place = sample;
    const steps = path.split('.');
    for (const [depth, step] of steps.entries()) {
      const name = step.replace('[]', '');
      if (depth === steps.length - 1) place[name] = index + 1;
      else {
        place[name] ??= step.endsWith('[]') ? [{}] : {};
        place = (step.endsWith('[]') ? (place[name] as unknown[])[0] : place[name]) as Record<string, unknown>;
      }
    }
  }
  return sample;
}

/** The value, and the paths that were read of it. */
export function watched<T extends object>(value: T): { readonly value: T; readonly read: ReadonlySet<string> } {
  const read = new Set<string>();
  const watch = <V extends object>(object: V, path: string): V =>
    new Proxy(object, {
      get(target, name) {
        const inner: unknown = Reflect.get(target, name);
        if (typeof name === 'symbol' || typeof inner === 'function' || (Array.isArray(target) && name === 'length'))
          return inner;
        const at = Array.isArray(target) ? `${path}[]` : path === '' ? name : `${path}.${name}`;
        read.add(at);
        return typeof inner === 'object' && inner !== null ? watch(inner, at) : inner;
      },
    });
  return { value: watch(value, ''), read };
}

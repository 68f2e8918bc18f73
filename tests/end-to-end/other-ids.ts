/** Ids in answers, ids that nothing has, and addresses made of them. Pure. */

/** The ids in an answer and in the entries of its list: `id`, or the end of Google's `name`. */
export function idsIn(text: string): string[] {
  const json = parsed(text);
  if (typeof json !== 'object' || json === null) return [];
  const lists = Object.values(json).filter((value) => Array.isArray(value));
  const things: unknown[] = [json, (json as { file?: unknown }).file, ...(lists[0] ?? [])];
  return things.flatMap((thing) => {
    const { id, name } = (thing ?? {}) as { id?: unknown; name?: unknown };
    if (typeof id === 'string' && id.length >= 8) return [id];
    const ended = typeof name === 'string' ? /^[a-z]+\/([\w-]{8,})$/i.exec(name)?.[1] : undefined;
    return ended === undefined ? [] : [ended];
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** An id of the same form: the last eight characters are others of their kind. */
export function madeUp(id: string): string {
  return id.slice(0, -8) + id.slice(-8).replaceAll(/[0-9a-zA-Z]/g, next);
}

const kinds = ['0123456789', 'abcdef', 'ghijklmnopqrstuvwxyz', 'ABCDEF', 'GHIJKLMNOPQRSTUVWXYZ'];

function next(letter: string): string {
  const kind = kinds.find((letters) => letters.includes(letter))!;
  return kind[(kind.indexOf(letter) + 1) % kind.length]!;
}

/** Addresses of a pattern with ids in it: whatever is within something stands behind an address of that which is read. */
export function tuplesFor(
  pattern: string,
  ids: readonly string[],
  reads: ReadonlyMap<string, readonly string[]>,
): string[] {
  const last = pattern.lastIndexOf('{');
  const before = pattern.slice(0, last);
  const rest = pattern.slice(pattern.indexOf('}', last) + 1);
  const heads = before.includes('{') ? headsOf(before, ids, reads) : [before];
  return heads.flatMap((head) => ids.map((id) => `${head}${id}${rest}`));
}

function headsOf(before: string, ids: readonly string[], reads: ReadonlyMap<string, readonly string[]>): string[] {
  const parent = before.slice(0, before.lastIndexOf('}') + 1);
  const known = reads.get(parent) ?? [];
  const paths = known.length > 0 ? known : tuplesFor(parent, ids, reads);
  return paths.map((path) => path + before.slice(parent.length));
}

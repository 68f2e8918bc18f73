/** Renamed settings: the former name of a setting stays valid beside the new one, with a notice that names the new one. */

import type { Notice } from './remarks.ts';
import { z } from './schema.ts';

interface Rename {
  readonly to: string;
  /** New spellings of the values by their former ones. */
  readonly values: ReadonlyMap<string, string>;
}

/** The new name of a setting, or the new name with the new spellings of its values. */
type Renamed = string | { readonly to: string; readonly values: Readonly<Record<string, string>> };

/** The former names in a parsed section, with their new ones. */
const renamesIn = new WeakMap<object, readonly (readonly [former: string, name: string])[]>();

/** Deeper sections than this have no renamed settings. */
const maxDepth = 4;

/** `former`: new names by former ones. The result has the new names only; a setting under both names is a problem. */
export function renamed<Shape extends z.ZodRawShape>(
  schema: z.ZodObject<Shape, z.core.$strict>,
  former: Readonly<Record<string, Renamed>>,
): z.ZodType<z.output<z.ZodObject<Shape>>, z.input<z.ZodObject<Shape>>> {
  const renames = new Map(Object.entries(former).map(([name, given]) => [name, renameOf(given)]));
  const shape: Record<string, z.ZodType> = {};
  for (const [name, { to, values }] of renames) {
    const type =
      values.size === 0 ? withoutDefault(schema.shape[to] as unknown as z.ZodType) : z.enum([...values.keys()]);
    shape[name] = type.optional().meta({ description: `Former name of \`${to}\`.`, deprecated: true });
  }
  const either = z.preprocess((section, context) => {
    for (const [name, { to }] of renames) {
      if (typeof section !== 'object' || section === null) continue;
      if (!Object.hasOwn(section, name) || !Object.hasOwn(section, to)) continue;
      context.addIssue({
        code: 'custom',
        path: [name],
        message: `is the former name of "${to}"; write only one of them`,
      });
    }
    return section;
  }, schema.extend(shape));
  return either.transform((section) => withNewNames(section as object, renames)) as never;
}

function renameOf(given: Renamed): Rename {
  if (typeof given === 'string') return { to: given, values: new Map() };
  return { to: given.to, values: new Map(Object.entries(given.values)) };
}

function withoutDefault(type: z.ZodType): z.ZodType {
  const hasDefault = type instanceof z.ZodDefault || type instanceof z.ZodPrefault || type instanceof z.ZodOptional;
  return hasDefault ? withoutDefault(type.unwrap() as z.ZodType) : type;
}

function withNewNames(section: object, renames: ReadonlyMap<string, Rename>): object {
  const members = new Map(Object.entries(section));
  const used = [...renames].filter(([name]) => members.get(name) !== undefined);
  if (used.length === 0) return section;
  for (const [name, { to, values }] of used) {
    const value = members.get(name) as string;
    members.set(to, values.get(value) ?? value);
    members.delete(name);
  }
  const result = Object.fromEntries(members);
  renamesIn.set(
    result,
    used.map(([name, { to }]) => [name, to]),
  );
  return result;
}

/** A warning for each former name in a parsed section; `path`: the name of the section. */
export function renamedNotices(path: string, section: unknown, depth = 0): Notice[] {
  if (typeof section !== 'object' || section === null || depth > maxDepth) return [];
  const own = (renamesIn.get(section) ?? []).map(
    ([name, to]): Notice => ({
      level: 'warning',
      text: `${path}.${name} is now called ${path}.${to}; the former name is valid until the next release`,
    }),
  );
  const inner = Object.entries(section).flatMap(([name, value]) => renamedNotices(`${path}.${name}`, value, depth + 1));
  return [...own, ...inner];
}

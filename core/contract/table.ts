/** Look-up tables for names from outside: without the members of every plain object (`constructor`, `__proto__`). Pure. */

/** The same members without a prototype. */
export function table<T extends object>(members: T): T {
  return Object.assign(Object.create(null) as T, members);
}

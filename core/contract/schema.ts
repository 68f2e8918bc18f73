/** Types of configuration values, on zod: what an operator may write and what the plugin gets. Pure. */

import { isIPv6 } from 'node:net';
import { z } from 'zod';
import { table } from './table.ts';

export { z };

const countPattern = /^(\d+(?:\.\d+)?)([kKmM]?)$/;
const multiples: Record<string, number> = table({ '': 1, k: 1_000, m: 1_000_000 });

/** A whole number, also as `40k` or `2M`. */
export const count = () =>
  z
    .union([z.number(), z.string()])
    .transform((value, context) => {
      const match = countPattern.exec(String(value));
      const number = match === null ? Number.NaN : Math.round(Number(match[1]) * multiples[match[2]!.toLowerCase()]!);
      if (Number.isSafeInteger(number)) return number;
      context.addIssue({ code: 'custom', message: 'must be a whole number such as 600, 40k or 2M' });
      return z.NEVER;
    })
    .meta({ description: 'Whole number, also as 40k or 2M.' });

const units: Record<string, number> = table({ ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 });

/** Milliseconds, written `500ms`, `30s`, `10m`, `5h` or `30d`. */
export const duration = () =>
  z.string({ error: ({ input }) => (input === undefined ? undefined : durationForm) }).transform((value, context) => {
    const match = /^(\d{1,9}(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value);
    if (match !== null) return Math.round(Number(match[1]) * units[match[2]!]!);
    context.addIssue({ code: 'custom', message: durationForm });
    return z.NEVER;
  });

const durationForm = 'must be a duration such as 500ms, 30s, 10m, 5h or 30d';

/** Milliseconds from 10ms to 10m, or `off`: 0. */
export const durationOrOff = () =>
  z.union([
    z.literal('off').transform(() => 0),
    duration().refine(
      (milliseconds) => milliseconds >= 10 && milliseconds <= 600_000,
      'must be off, or from 10ms to 10m',
    ),
  ]);

/** Bytes, written `32MB`, `512KB` or as a number. */
export const size = () =>
  z.union([z.number(), z.string()]).transform((value, context) => {
    const match = /^(\d{1,12})\s*(|B|KB|MB|GB)$/i.exec(String(value));
    const scale: Record<string, number> = { '': 1, B: 1, KB: 2 ** 10, MB: 2 ** 20, GB: 2 ** 30 };
    if (match !== null) return Number(match[1]) * scale[match[2]!.toUpperCase()]!;
    context.addIssue({ code: 'custom', message: 'must be a size such as 512KB or 32MB' });
    return z.NEVER;
  });

/** One value or a list; always given as a list, empty strings left out (an unset `${ENV:-}`). */
export const listOf = <T extends z.ZodType<string>>(item: T) =>
  z
    .union([item, z.array(item)])
    .transform((value) => (Array.isArray(value) ? value : [value]).filter((entry) => entry !== ''));

/** The beginnings of paths that no key or password has. */
const pathForm =
  /^(?:file:|~\/|\.{1,2}\/|\/(?:app|config|etc|home|mnt|opt|private|root|run|secrets|srv|tmp|Users|usr|var|vault)\/)/;

/** Names a stored secret among vendors' keys alone. */
const bareReference = /^secret:[\w.-]+$/;

/** A key, password or other secret. `takesReference`: the plugin itself reads `secret:NAME`. */
export const secretText = ({ takesReference = false } = {}) =>
  z
    .string()
    .refine((value) => !pathForm.test(value), {
      error: ({ input }) => {
        const path = /^file:(?:\/\/)?(\/[^\s"]*)$/.exec(String(input))?.[1] ?? '/path';
        return `is the path of a file, not what stands in it: write "\${file:${path}}"`;
      },
    })
    .refine((value) => takesReference || !bareReference.test(value), {
      error: ({ input }) => `is the name of a stored secret, not the secret: write "\${${String(input)}}" here`,
    });

const mostSecrets = 8;

/** One secret or a list of them, of which the first is used for new values and all for existing ones; given as a list. */
export const secretList = (leastLength: number) =>
  listOf(
    secretText().refine(
      (value) => value === '' || value.length >= leastLength,
      `must have at least ${leastLength} characters`,
    ),
  )
    .refine((list) => list.length <= mostSecrets, `must be at most ${mostSecrets} secrets`)
    .refine((list) => new Set(list).size === list.length, 'must not have the same secret twice');

/** Where a server listens. */
export interface ListenAddress {
  readonly host: string | undefined;
  readonly port: number;
  /** The address is IPv6 and has no brackets: the last part could be meant as part of it. */
  readonly isUnclear?: boolean;
}

const hostName = /^\w(?:[\w.-]*\w)?$/;

/** undefined: the text names no such place. */
function parseListen(text: string): ListenAddress | undefined {
  const [, written, digits] = /^(?:(.+):)?(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (digits === undefined || port > 65_535) return undefined;
  if (written === undefined) return { host: undefined, port };
  const bracketed = /^\[(.+)\]$/.exec(written)?.[1];
  if (bracketed !== undefined) return isIPv6(bracketed) ? { host: bracketed, port } : undefined;
  if (hostName.test(written)) return { host: written, port };
  return isIPv6(written) ? { host: written, port, isUnclear: true } : undefined;
}

/** `example`: a place such as one writes here. */
export const listenAddress = (example: string) =>
  z.union([z.number(), z.string()]).transform((value, context): ListenAddress => {
    const found = parseListen(String(value));
    if (found !== undefined) return found;
    const port = example.slice(example.lastIndexOf(':') + 1);
    context.addIssue({ code: 'custom', message: `must be a port such as ${port}, or an address such as ${example}` });
    return z.NEVER;
  });

/** The warning for an address with an ambiguous end, by the name of its setting. */
export function listenRemarks(setting: string, { host, port, isUnclear }: ListenAddress): string[] {
  if (isUnclear !== true) return [];
  return [`${setting}: ${host}:${port} is read as the address ${host} and the port ${port}: write [${host}]:${port}`];
}

const unlistenable = new Map([
  ['EADDRINUSE', 'is in use'],
  ['EADDRNOTAVAIL', 'is no address of this machine'],
  ['EACCES', 'needs rights that this process does not have'],
  ['ENOTFOUND', 'has a host name that is not known'],
  ['EAI_AGAIN', 'has a host name that cannot be looked up'],
]);

/** The error of a server that could not listen, as a sentence that names the setting; any other error stays as it is. */
export function listenFailure(error: unknown, setting: string, { host, port }: ListenAddress): unknown {
  const reason = unlistenable.get((error as { code?: string }).code ?? '');
  if (reason === undefined) return error;
  const place = host === undefined ? `Port ${port}` : host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  return new Error(`${place} ${reason}: set ${setting} to another one.`);
}

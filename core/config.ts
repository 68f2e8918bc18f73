/** A gateway's YAML to validated sections: every bad key and every missing variable is told at once, with file and line. */
import { resolve } from 'node:path';
import { isAddressRange } from './client-address.ts';
import type { Plugin } from './contract.ts';
import { count, duration, size, z } from './schema.ts';
import { type Drafts, type LoadedYaml, loadYaml, type Problem, type Values } from './yaml.ts';

/** The members of a gateway file that belong to no plugin. */
export const gatewaySchema = z.strictObject({
  gateway: z
    .string()
    .regex(/^[a-z][a-z0-9_-]{0,31}$/, 'must be a short lower-case name')
    .describe('Name of this gateway, told in logs.'),
  listen: z
    .union([z.number(), z.string()])
    .default('8080')
    .transform((value, context) => {
      const match = /^(?:(.+):)?(\d{1,5})$/.exec(String(value));
      if (match !== null && Number(match[2]) <= 65_535)
        return { host: match[1]?.replace(/^\[|\]$/g, ''), port: Number(match[2]) };
      context.addIssue({
        code: 'custom',
        message: 'must be a port such as 8080, or an address such as 127.0.0.1:8080',
      });
      return z.NEVER;
    })
    .describe('Port, or address and port, on which clients are served. 0 takes a free port.'),
  schema: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,62}$/, 'must be a lower-case SQL name')
    .optional()
    .describe("Database schema that is this gateway's alone. Default: its name."),
  data: z
    .string()
    .default('./data')
    .describe('Directory of everything that must survive a restart. DATA_DIR in the environment comes first.'),
  plugins: z
    .array(z.string())
    .min(1)
    .describe('The plugins in the order in which a request meets them: a built-in name, a ./path or a package.'),
  log: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe('Least level of log lines that are written.'),
  reload: z
    .enum(['watch', 'signal'])
    .default('signal')
    .describe('When changed files are taken up: as soon as one is written (watch), or at SIGHUP alone (signal).'),
  server: z
    .strictObject({
      body_limit: size()
        .default(32 * 2 ** 20)
        .describe('Largest request body.'),
      bodies_in_flight: size()
        .default(1024 * 2 ** 20)
        .describe('Memory that all request bodies together may take.'),
      answer_limit: size()
        .default(256 * 2 ** 20)
        .describe('Largest answer of an upstream that is read whole.'),
      header_limit: size()
        .default(64 * 2 ** 10)
        .describe('Largest head of a request.'),
      headers: count().default(200).describe('Most headers in one request.'),
      sockets: count().default(10_000).describe('Most WebSockets that are open at once.'),
      request_timeout: duration().default(120_000).describe('Time in which a request must have arrived whole.'),
      timeout: duration().default(600_000).describe('Time in which an exchange must have ended.'),
      stall_timeout: duration().default(120_000).describe('How long a client may take nothing of what waits for it.'),
      idle_frame: duration().default(15_000).describe('Silence in a stream after which the client is sent a comment.'),
      trusted_proxies: z
        .array(z.string().refine(isAddressRange, 'must be an address or a range such as 10.0.0.0/8'))
        .default([])
        .describe('Proxies in front whose X-Forwarded-For tells who calls: addresses and ranges.'),
      drain: z
        .strictObject({
          grace: duration()
            .default(1_000)
            .describe('Time between the first failing readiness check and the last accepted connection.'),
          deadline: duration()
            .default(600_000)
            .describe('Time that running exchanges get to end when the gateway stops.'),
        })
        .prefault({})
        .describe('How the gateway stops.'),
    })
    .prefault({})
    .describe('Limits of the HTTP server.'),
});
export type GatewaySettings = z.output<typeof gatewaySchema>;

/** The database schema of a gateway: as configured, else its name as SQL takes it. */
export function schemaOf({ schema, gateway }: GatewaySettings): string {
  return schema ?? gateway.replaceAll('-', '_');
}

/** What an operator wrote cannot run. The message lists every problem. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly Problem[];

  constructor(problems: readonly Problem[]) {
    super(problems.map(({ where, message }) => `${where}: ${message}`).join('\n'));
    this.problems = problems;
  }
}

export interface GatewayFile {
  readonly file: string;
  readonly settings: GatewaySettings;
  /** Absolute. */
  readonly directory: string;
  /** Raw sections by plugin name. */
  readonly sections: Values;
  readonly yaml: LoadedYaml;
}

/** Reads the file, or what is drafted in its place, and validates what belongs to no plugin. Throws a ConfigError. */
export function readGatewayFile(
  file: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
  drafts?: Drafts,
): GatewayFile {
  const yaml = loadYaml(file, environment, drafts);
  const own: Values = {};
  const sections: Values = {};
  for (const [name, value] of Object.entries(yaml.values)) (name in gatewaySchema.shape ? own : sections)[name] = value;
  const parsed = gatewaySchema.safeParse(own);
  // Of a text that could not be read at all nobody needs to be told what is missing in it.
  const unread = yaml.problems.length > 0 && Object.keys(yaml.values).length === 0;
  const missing = parsed.success || unread ? [] : problemsOf(parsed.error, [], yaml);
  const problems = [...yaml.problems, ...missing];
  if (!parsed.success || problems.length > 0) throw new ConfigError(problems);
  const data = environment['DATA_DIR'];
  return {
    file,
    settings: parsed.data,
    directory: resolve(data === undefined || data === '' ? parsed.data.data : data),
    sections,
    yaml,
  };
}

/**
 * The listed plugins' sections by name, validated by their own schemas. A section that belongs to no plugin of the house is
 * a problem (`known` has them all); one whose plugin is not listed here is another gateway's business. Throws a ConfigError.
 */
export function readSections(
  gateway: GatewayFile,
  plugins: readonly Plugin[],
  known: ReadonlySet<string>,
): Map<string, unknown> {
  const problems: Problem[] = [];
  const listed = new Set(plugins.map((plugin) => plugin.name));
  for (const name of Object.keys(gateway.sections)) {
    if (listed.has(name) || known.has(name)) continue;
    problems.push({
      where: gateway.yaml.where([name]),
      message: `"${name}" is neither a setting of a gateway nor the section of a plugin`,
    });
  }
  const sections = new Map<string, unknown>();
  for (const plugin of plugins) {
    const parsed = (plugin.config as unknown as z.ZodType).safeParse(gateway.sections[plugin.name] ?? {});
    if (parsed.success) sections.set(plugin.name, parsed.data);
    else problems.push(...problemsOf(parsed.error, [plugin.name], gateway.yaml));
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return sections;
}

function problemsOf(error: z.ZodError, above: readonly string[], yaml: LoadedYaml): Problem[] {
  return error.issues.flatMap(inBestForm).flatMap((issue) => {
    const path = [...above, ...issue.path];
    if (issue.code !== 'unrecognized_keys')
      return [{ where: yaml.where(path), message: yaml.hide(`${written(path)}: ${lowerFirst(issue.message)}`) }];
    return issue.keys.map((key) => ({
      where: yaml.where([...path, key]),
      message: `${written([...path, key])}: there is no such setting`,
    }));
  });
}

type Issue = z.core.$ZodIssue;

/** Of a value that may have several forms: what is wrong with it in the form that it was meant in, else which forms there are. */
function inBestForm(issue: Issue): Issue[] {
  if (issue.code !== 'invalid_union') return [issue];
  const meant = issue.errors
    .filter((branch) => !branch.some(isOfOtherForm))
    .toSorted((left, right) => depthOf(right) - depthOf(left))[0];
  if (meant !== undefined)
    return meant.flatMap((inner) => inBestForm({ ...inner, path: [...issue.path, ...inner.path] }));
  const forms = [...new Set(issue.errors.flatMap((branch) => branch.flatMap(formsIn)))];
  return forms.length === 0 ? [issue] : [{ ...issue, message: `must be ${forms.join(' or ')}` }];
}

/** Whether the whole value, not a part of it, is nothing that the form could be. */
function isOfOtherForm(issue: Issue): boolean {
  if (issue.path.length > 0) return false;
  if (issue.code === 'invalid_union') return issue.errors.every((branch) => branch.some(isOfOtherForm));
  return issue.code === 'invalid_type' || issue.code === 'invalid_value';
}

function depthOf(branch: readonly Issue[]): number {
  return Math.max(...branch.map(({ path }) => path.length));
}

const formNames: Readonly<Record<string, string>> = {
  object: 'a mapping',
  record: 'a mapping',
  array: 'a list',
  string: 'text',
};

function formsIn(issue: Issue): string[] {
  if (issue.path.length > 0) return [];
  if (issue.code === 'invalid_union') return issue.errors.flatMap((branch) => branch.flatMap(formsIn));
  if (issue.code === 'invalid_value') return issue.values.map((value) => `"${String(value)}"`);
  return issue.code === 'invalid_type' ? [formNames[issue.expected] ?? `a ${issue.expected}`] : [];
}

function written(path: readonly PropertyKey[]): string {
  return path.map(String).join('.') || 'the file';
}

function lowerFirst(message: string): string {
  return message.charAt(0).toLowerCase() + message.slice(1);
}

/** Parses a gateway's YAML to validated sections; reports all bad keys and missing variables with file and line. */

import type { Plugin } from '../contract/contract.ts';
import { count, duration, listenAddress, size, z } from '../contract/schema.ts';
import { isAddressRange } from '../http/client-address.ts';
import { crossOriginSchema } from '../http/cross-origin.ts';
import { didYouMean, nearName } from '../tools/near-names.ts';
import { proxySchema, tlsSchema } from '../tools/network-config.ts';
import { dataDirectory } from './files/own-file.ts';
import type { FoundSecrets } from './secrets/filling.ts';
import { parseSection } from './section-problems.ts';
import { type Drafts, display, type LoadedYaml, loadYaml, type Problem, type Values } from './yaml.ts';

/** The members of a gateway file that belong to no plugin. */
export const gatewaySchema = z.strictObject({
  gateway: z
    .string()
    .regex(/^[a-z][a-z0-9_-]{0,31}$/, 'must be a short lower-case name')
    .describe(
      'Name of this gateway in logs, metrics and the console. Give each gateway its own where several share a machine or a collector.',
    ),
  listen: listenAddress('127.0.0.1:8080')
    .prefault('8080')
    .describe(
      'Port, or address and port, on which clients are served; 0 takes a free port. Change it when the port is taken, or to serve one network interface only.',
    ),
  schema: z
    .string()
    .regex(/^[a-z][a-z0-9_]{0,62}$/, 'must be a lower-case SQL name')
    .optional()
    .describe(
      'Database schema that belongs to this gateway alone. Set it when two gateways of one database would otherwise have the same name. Default: its name.',
    ),
  data: z
    .string()
    .default('./data')
    .describe(
      'Directory of everything that must survive a restart; DATA_DIR in the environment comes first. Point it to a disk that is backed up.',
    ),
  plugins: z
    .array(z.string())
    .min(1)
    .describe(
      'The plugins in the order in which a request meets them: a built-in name, a ./path or a package. Change it to add or leave out a capability; check explains a wrong order.',
    ),
  log: z
    .enum(['debug', 'info', 'warn', 'error', 'silent'])
    .default('info')
    .describe(
      'Lowest level of log lines that are written. Use debug while you look for a fault, warn where the lines of requests go elsewhere.',
    ),
  reload: z
    .enum(['watch', 'signal'])
    .default('signal')
    .describe(
      'When changed files are applied: as soon as one is written (watch), or at SIGHUP alone (signal); files with secrets are always watched. Use watch where files are mounted and nothing can send a signal.',
    ),
  server: z
    .strictObject({
      body_limit: size()
        .default(32 * 2 ** 20)
        .describe('Largest request body. Raise it when clients send large images or documents inline.'),
      bodies_in_flight: size()
        .default(1024 * 2 ** 20)
        .describe(
          'Memory that all request bodies together may take. Lower it on a small machine; raise it when clients get 503 because of too many large requests.',
        ),
      bodies_per_account: size()
        .optional()
        .describe(
          'Memory that the request bodies of one account may take, or of one address where there is no key. Set it when one client sends many large bodies at once. Default: a quarter of bodies_in_flight, and room for one body.',
        ),
      decompressions: count()
        .refine((value) => value >= 1, 'must be at least 1')
        .prefault(8)
        .describe(
          'Compressed request bodies that are unpacked at the same time; others wait their turn. Raise it on machines with many cores whose clients compress.',
        ),
      body_values: count()
        .refine((value) => value >= 1_000, 'must be at least 1000')
        .prefault(100_000)
        .describe(
          'Members and elements, at all depths, in a JSON body larger than 256 KB; more are refused. Raise it when clients send very long conversations or tables.',
        ),
      answer_limit: size()
        .default(256 * 2 ** 20)
        .describe(
          'Largest answer of an upstream that is read whole. Raise it when models return very large images or files in JSON.',
        ),
      header_limit: size()
        .default(64 * 2 ** 10)
        .describe('Largest head of a request. Raise it when a proxy in front adds long headers.'),
      headers: count().default(200).describe('Most headers in one request. Raise it when a proxy in front adds many.'),
      sockets: count()
        .default(10_000)
        .describe(
          'Most WebSockets that are open at once. Raise it together with the descriptors that the process may open.',
        ),
      upstream_connections: count()
        .refine((value) => value >= 1, 'must be at least 1')
        .optional()
        .describe(
          'Most requests at once to one address of a vendor with one key; beyond it the client gets 503. Set it when the limit of descriptors is shared with other programs. Default: half of the descriptors that the process may open.',
        ),
      request_timeout: duration()
        .default(120_000)
        .describe('Time in which a request must have arrived whole. Raise it for clients that upload over slow lines.'),
      timeout: duration()
        .default(600_000)
        .describe(
          'Time in which an exchange must have ended. Raise it for models that answer for more than ten minutes.',
        ),
      stall_timeout: duration()
        .default(120_000)
        .describe(
          'How long a client may take nothing of what waits for it. Lower it when many clients stop reading without closing.',
        ),
      idle_frame: duration()
        .default(15_000)
        .describe(
          'Silence in a stream after which the client is sent something that it skips: a comment, or to clients of generate-content a blank line. Lower it below the idle timeout of a proxy in front.',
        ),
      trusted_proxies: z
        .array(z.string().refine(isAddressRange, 'must be an address or a range such as 10.0.0.0/8'))
        .default([])
        .describe(
          'Proxies in front of the gateway with a trusted X-Forwarded-For: addresses and ranges. Set it behind a load balancer, so that limits and key addresses see the clients.',
        ),
      cors: crossOriginSchema,
      drain: z
        .strictObject({
          grace: duration()
            .default(1_000)
            .describe(
              'Time between the first failing readiness check and the last accepted connection. Raise it above the interval at which your load balancer checks.',
            ),
          deadline: duration()
            .default(600_000)
            .describe(
              'Time that running exchanges get to end when the gateway stops. Keep it below the time after which your orchestrator kills the process.',
            ),
        })
        .prefault({})
        .describe('How the gateway stops.'),
    })
    .prefault({})
    .describe('Limits of the HTTP server.'),
  outbound: z
    .strictObject({
      proxy: proxySchema
        .default('')
        .describe(
          'Proxy to these services: http://, https:// or socks5://, with user and password where needed. Set it where the gateway has no direct way out. Empty: none.',
        ),
      direct: z
        .array(z.string().min(1))
        .default([])
        .describe(
          'Hosts that are reached without the proxy: names, each with all below it, and addresses. List services of your own network.',
        ),
      tls: tlsSchema
        .optional()
        .describe(
          'Certificates for connections to these services. Set it when they use a private authority or ask for a certificate.',
        ),
    })
    .prefault({})
    .describe('How services outside are reached that plugins ask by `host.fetch`; not the calls of models.'),
});
export type GatewaySettings = z.output<typeof gatewaySchema>;

/** The database schema of a gateway: as configured, else its name as an SQL identifier. */
export function schemaOf({ schema, gateway }: GatewaySettings): string {
  return schema ?? gateway.replaceAll('-', '_');
}

/** The problems of a configuration; the message lists all of them. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
  readonly problems: readonly Problem[];

  constructor(found: readonly Problem[]) {
    const problems = grouped(found);
    super(problems.map(({ where, message }) => `${where}: ${message}`).join('\n'));
    this.problems = problems;
  }
}

/** One problem for a mistake that is made at several places. */
function grouped(problems: readonly Problem[]): Problem[] {
  const places = Map.groupBy(problems, ({ message }) => message);
  return [...places].map(([message, [first, ...others]]) => {
    const where = [...new Set(others.map((other) => other.where))].filter((other) => other !== first!.where);
    return where.length === 0 ? first! : { where: first!.where, message: `${message} (also at ${where.join(', ')})` };
  });
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

/**
 * Reads the file, or a draft in its place, and validates what belongs to no plugin. `found`: secrets of plugins' sources; without it
 * they are empty. Throws a ConfigError.
 */
export function readGatewayFile(
  file: string,
  environment: Readonly<Record<string, string | undefined>> = process.env,
  drafts?: Drafts,
  found?: FoundSecrets,
): GatewayFile {
  const yaml = loadYaml(file, environment, drafts, found);
  const own: Values = {};
  const sections: Values = {};
  for (const [name, value] of Object.entries(yaml.values)) (name in gatewaySchema.shape ? own : sections)[name] = value;
  // What an unread text says is not known, so nothing else is reported.
  if (yaml.isUnread) throw new ConfigError(yaml.problems.slice(-1));
  const parsed = parseSection(gatewaySchema, own, [], yaml);
  const wrong = 'problems' in parsed ? withMisspelt(parsed.problems, sections, yaml) : [];
  const problems = [...yaml.problems, ...wrong];
  if ('problems' in parsed || problems.length > 0) throw new ConfigError(problems);
  return {
    file,
    settings: parsed.data,
    directory: dataDirectory(parsed.data.data, environment),
    sections,
    yaml,
  };
}

/**
 * The listed plugins' sections by name, validated by their schemas. A section of an unknown plugin is a problem (`known` has
 * the built-in ones); one of a plugin that is not listed is ignored. Throws a ConfigError.
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
      message: misspelt(name, [...listed, ...known]),
    });
  }
  const sections = new Map<string, unknown>();
  for (const plugin of plugins) {
    const schema = plugin.config as unknown as z.ZodType;
    const parsed = parseSection(schema, gateway.sections[plugin.name] ?? {}, [plugin.name], gateway.yaml);
    if ('data' in parsed) sections.set(plugin.name, parsed.data);
    else problems.push(...parsed.problems);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return sections;
}

/** With the sections that are misspelt settings of the gateway, if a setting is missing. */
function withMisspelt(problems: readonly Problem[], sections: Values, yaml: LoadedYaml): Problem[] {
  const settings = Object.keys(gatewaySchema.shape);
  const found = Object.keys(sections).flatMap((name) => {
    const meant = nearName(name, settings);
    return meant === undefined ? [] : [{ name, meant }];
  });
  const left = problems.filter(({ message }) => !found.some(({ meant }) => message === `${meant}: is missing`));
  if (left.length === problems.length) return left;
  return [...left, ...found.map(({ name }) => ({ where: yaml.where([name]), message: misspelt(name, settings) }))];
}

function misspelt(name: string, known: readonly string[]): string {
  const names = [...Object.keys(gatewaySchema.shape), ...known];
  return `"${name}" is neither a setting of a gateway nor the section of a plugin${didYouMean(name, names)}`;
}

/** Sections of the gateway's own file that no plugin of its list reads. Files that it includes may serve other gateways too. */
export function unusedSections({ sections, yaml }: GatewayFile, listed: ReadonlySet<string>) {
  const [root] = yaml.files.keys();
  return Object.keys(sections)
    .filter((name) => !listed.has(name) && yaml.where([name]).startsWith(`${display(root!)}:`))
    .map((name) => ({
      name,
      text: `the section "${name}" has no effect: add "${name}" to the list of plugins, or remove the section`,
    }));
}

/** The pages of the reference, each made from what the sources say. */

import type { Plugin } from '../../core/contract/contract.ts';
import { type ErrorKind, errorStatus, GatewayError } from '../../core/contract/errors.ts';
import { gatewaySchema } from '../../core/gateway/config.ts';
import { type OwnCommand, ownCommands } from '../../core/process/own-commands.ts';
import { accountRights, type MemberRole, memberRoles } from '../../plugins/common/domain/organizations/rights.ts';
import { envelope, googleError } from '../../plugins/common/kit/error-envelope.ts';
import { access, rightOf } from '../../plugins/console/api/routing/access.ts';
import { errorCodes } from '../../plugins/docs/error-codes.ts';
import { headerTexts } from '../../plugins/docs/headers.ts';
import { codeOf } from '../../plugins/error-shape/codes.ts';
import { renderError as renderMessages } from '../../plugins/protocol-convert/protocols/messages/errors.ts';
import { conformancePage } from './conformance.ts';
import { type Described, describedPlugins } from './gateway.ts';
import { page, table } from './markdown.ts';
import { labelsOf } from './metric-labels.ts';
import { metrics } from './metrics.ts';
import { extensionPoints } from './points.ts';
import { type Setting, settingsOf } from './settings.ts';
import { sinceOf } from './since.ts';

export const folder = 'plugins/docs/reference';

/** Text by file name below the folder. */
export async function referencePages(): Promise<Map<string, string>> {
  const described = await describedPlugins();
  const pages = plainPages(described.map(({ plugin }) => plugin));
  const sections = sectionsOf(described);
  for (const section of sections) pages.set(`settings/${section.name}.md`, settingsPage(section));
  pages.set('settings.md', indexPage(sections));
  pages.set('commands.md', commandsPage(described));
  pages.set('limits.md', limitsPage(sections));
  return pages;
}

/** Those for which no gateway is set up. */
export function plainPages(plugins: readonly Plugin[]): Map<string, string> {
  return new Map([
    ['errors.md', errorsPage()],
    ['headers.md', headersPage()],
    ['metrics.md', metricsPage()],
    ['extension-points.md', pointsPage(plugins)],
    ['conformance.md', conformancePage()],
    ['rights.md', rightsPage()],
  ]);
}

// ---------------------------------------------------------------------------------------------------------------- rights

function rightsPage(): string {
  const mark = (roles: readonly MemberRole[]) => memberRoles.map((role) => (roles.includes(role) ? 'yes' : '–'));
  const rights = Object.entries(accountRights).map(([name, { what, roles }]) => [name, what, ...mark(roles)]);
  const routes = Object.entries(access).flatMap(([route, needed]) => {
    const right = rightOf(needed);
    return right === undefined ? [] : [[`\`${route}\``, right]];
  });
  return page(
    'Rights of members',
    'What each role includes in an account. The account’s own person is its owner.',
    table(['right', 'what', ...memberRoles], rights),
    '## By route',
    'Routes of the console’s API for the chosen account. A role without the right is refused with 403 `role_not_included`.',
    table(['route', 'right'], routes),
  );
}

// -------------------------------------------------------------------------------------------------------------- settings

interface Section {
  readonly name: string;
  readonly settings: readonly Setting[];
  /** Whether a reload applies this setting. */
  reloads(path: string): boolean;
}

/** Members of the gateway's own settings that wait for a restart, and all that begins with them. */
const ownRestarts = [
  ...['include', 'gateway', 'listen', 'schema', 'data', 'plugins'],
  ...['server.header_limit', 'server.answer_limit', 'server.upstream_connections'],
];

/** Where types that plugins add have their settings, by their point. */
const placesOfTypes: Readonly<Record<string, string>> = {
  'vendor credentials': 'providers.NAME.auth',
  "alerts' sinks": 'alerts.sinks.NAME',
  'guardrail checks': 'guardrails.checks.NAME',
};

function sectionsOf(described: readonly Described[]): Section[] {
  const own: Section = {
    name: 'gateway',
    settings: settingsOf('', gatewaySchema),
    reloads: (path) => !ownRestarts.includes(path),
  };
  const ofPlugins = described.map(({ plugin, instance, extensions }): Section => {
    const { reload } = instance ?? {};
    // Schemes and sinks stand in sections that are applied whole.
    const isReloaded = (path: string) =>
      path.includes('(') ||
      (reload !== undefined && (reload.members?.includes(path.split('.')[1]!.replace('[]', '')) ?? true));
    const added = extensions
      .filter(({ point }) => Object.hasOwn(placesOfTypes, point))
      .flatMap(({ point, extension }) => {
        const { name, config } = extension as { name: string; config: Plugin['config'] };
        return settingsOf(`${placesOfTypes[point]} (${name})`, config as never);
      });
    return {
      name: plugin.name,
      settings: [...settingsOf(plugin.name, plugin.config as never), ...added],
      reloads: isReloaded,
    };
  });
  return [own, ...ofPlugins.filter(({ settings }) => settings.length > 0)];
}

const anchorOf = (path: string) =>
  path
    .toLowerCase()
    .replace(/[^\w -]/g, '')
    .replaceAll(' ', '-');

function settingsPage({ name, settings, reloads }: Section): string {
  const title = name === 'gateway' ? 'Settings of the gateway itself' : `Settings: ${name}`;
  const entries = settings.map((setting) => {
    const { path, type, unit, default: fallback, isRequired, description, example, sameAs } = setting;
    const facts = [
      type,
      ...(unit === undefined ? [] : [`unit: ${unit}`]),
      ...(isRequired ? ['required'] : fallback === undefined ? [] : [`default: ${fallback}`]),
      reloads(path) ? 'applied by a reload' : 'waits for a restart',
      `since ${sinceOf(path)}`,
    ];
    const same = sameAs === undefined ? '' : ` Its members are those of [${sameAs}](#${anchorOf(sameAs)}).`;
    const shown = example === undefined ? '' : `\n\n\`${example}\``;
    return `## ${path}\n\n${facts.join(' · ')}\n\n${description}${same}${shown}`;
  });
  return page(title, ...entries);
}

function indexPage(sections: readonly Section[]): string {
  const rows = sections.map(({ name, settings }) => [
    `[${name}](settings/${name}.md)`,
    settings
      .filter(({ path }) => path.split('.').length === (name === 'gateway' ? 1 : 2) && !path.includes('('))
      .map(({ path }) => `\`${path.split('.').at(-1)}\``)
      .join(' '),
  ]);
  return page(
    'Settings',
    'NAME stands for a name of your own, `[]` for each entry of a list.',
    table(['section', 'settings'], rows),
  );
}

// -------------------------------------------------------------------------------------------------------------- commands

function commandsPage(described: readonly Described[]): string {
  const ofPlugins = described.flatMap(({ plugin, instance }) =>
    (instance?.commandLine?.commands ?? []).map((command) => ({ ...command, from: plugin.name })),
  );
  const all = [...ownCommands.map((command: OwnCommand) => ({ ...command, from: 'the gateway' })), ...ofPlugins];
  const unique = [...new Map(all.map((command) => [command.name, command])).values()];
  const entries = unique
    .toSorted((one, other) => one.name.localeCompare(other.name, 'en'))
    .map(({ name, summary, arguments: positional = [], options = {}, from }) => {
      const rows = Object.entries(options).map(([flags, text]) => [`\`${flags}\``, text]);
      const shown = rows.length === 0 ? '' : `\n\n${table(['option', 'what'], rows)}`;
      return `## ${[name, ...positional].join(' ').replaceAll('<', '&lt;')}\n\n${summary} (of ${from})${shown}`;
    });
  return page(
    'Commands',
    '`npm run -s gateway -- COMMAND` in a checkout, `model-gateway COMMAND` of the package. Every command takes `--config FILE` and `--json`.',
    ...entries,
  );
}

// ---------------------------------------------------------------------------------------------------------------- errors

function errorsPage(): string {
  const kinds = Object.keys(errorStatus) as ErrorKind[];
  const rows = kinds.map((kind) => {
    const error = new GatewayError(kind, '');
    const { type, code } = envelope(error).error;
    const { body } = renderMessages(error, { id: '' });
    const messages = (JSON.parse(String(body)) as { error: { type: string } }).error.type;
    return [
      String(error.status),
      kind,
      `\`${type}\`, ${code === null ? '–' : `\`${code}\``}`,
      `\`${messages}\``,
      `\`${googleError(error).error.status}\``,
      `\`${codeOf(error)}\``,
    ];
  });
  const codes = Object.entries(errorCodes)
    .toSorted(([one], [other]) => one.localeCompare(other, 'en'))
    .map(([code, { kinds: of, meaning, cure }]) => [
      `\`${code}\``,
      of.map((kind) => errorStatus[kind]).join(', '),
      meaning,
      cure,
    ]);
  return page(
    'Errors',
    'Errors have the shape of the client’s protocol. A refusal that a repetition would meet again has `x-should-retry: false`, one that passes has `retry-after`.',
    '## By status',
    table(
      [
        'status',
        'kind',
        'chat, responses: `type`, `code` without a code of its own',
        'messages: `type`',
        'generate-content: `status`',
        'with `error-shape`: `code`',
      ],
      rows,
    ),
    '## By code',
    'Chat and responses send the code as `error.code` (limits of plans and keys as `rate_limit_exceeded`), messages as `error.details.error_code`, generate-content in capitals as `error.details[].reason`.',
    table(['code', 'status', 'what it means', 'what to do'], codes),
  );
}

/** Settings that bound something, and what a client gets beyond them. */
const limits: readonly (readonly [path: string, beyond: string])[] = [
  ['server.body_limit', '413'],
  ['server.bodies_in_flight', '503'],
  ['server.bodies_per_account', '429 `request_bytes`'],
  ['server.decompressions', 'a wait, then 429 `compressed_requests`'],
  ['server.body_values', '400'],
  ['server.answer_limit', '502'],
  ['server.header_limit', '431'],
  ['server.headers', '431'],
  ['server.sockets', '429 `websockets`'],
  ['server.upstream_connections', '503 `upstream_connections`'],
  ['server.request_timeout', '408'],
  ['server.timeout', '504, or an error in the stream'],
  ['auth.failures.per_minute', '429 `failed_attempts`'],
  ['plans.offers.NAME.limits.rpm', '429 `rpm`'],
  ['plans.offers.NAME.limits.rpd', '429 `rpd`'],
  ['plans.offers.NAME.limits.tpm', '429 `tpm`'],
  ['plans.offers.NAME.limits.concurrency', '429 `concurrency`'],
  ['plans.offers.NAME.windows', '402 `plan_window_used_up`'],
  ['billing.journal.backlog', '503 `journal_unavailable`'],
  ['billing.journal.limit', '503 `journal_unavailable`'],
  ['providers.NAME.concurrency', 'a wait, then the next target'],
  ['providers.NAME.queue.length', 'the next target, then 503 `upstream_busy`'],
  ['providers.NAME.timeouts.first_byte', 'the next target, then 504'],
  ['protocol-convert.translated_values', '400'],
  ['protocol-convert.media.max_bytes', '400 `media_not_fetched`'],
  ['protocol-convert.media.per_request', '400'],
  ['endpoints.inputs', '400 `too_many_entries`'],
  ['endpoints.documents', '400 `too_many_entries`'],
  ['endpoints.file', '413'],
  ['endpoints.spool.forms', '429 `forms`'],
  ['batches.lines', '400'],
  ['batches.open', '429 `batches`'],
  ['files.account_limit', '403 `file_space_used_up`'],
  ['files.total_limit', '503 `storage_full`'],
  ['files.uploads.file_limit', '413'],
  ['files.uploads.files', '403 `too_many_files`'],
  ['files.uploads.parallel', '429 `uploads`'],
  ['files.answers', '429 `files`'],
  ['vector-stores.file', 'the file fails as `invalid_file`'],
  ['vector-stores.account.stores', '403 `vector_store_space_used_up`'],
  ['vector-stores.account.files', '403 `vector_store_space_used_up`'],
  ['vector-stores.account.chunks', 'the file fails as `server_error`'],
  ['vector-stores.account.bytes', 'the file fails as `server_error`'],
  ['vector-stores.searches', '429 `vector_store_searches`'],
  ['websockets.per_account', '429 `websockets`'],
  ['websockets.message', 'the connection is closed with 1009'],
  ['websockets.queue', 'an error event, `too_many_queued_turns`'],
  ['websockets.control_frames', 'the connection is closed'],
  ['cache.bytes', 'answers that were used longest ago are kept no more'],
  ['cache.account', 'those of the account that were used longest ago are kept no more'],
  ['cache.largest', 'the answer is not kept'],
  ['guardrails.checks.NAME.within', '503 `guardrail_unavailable`, or what `broken` says'],
  ['idempotency.max_bytes', '409 `idempotency_answer_lost` for a repetition'],
];

function limitsPage(sections: readonly Section[]): string {
  const all = new Map(
    sections.flatMap(({ name, settings }) => settings.map((setting) => [setting.path, { name, setting }] as const)),
  );
  const rows = limits.map(([path, beyond]) => {
    const found = all.get(path);
    if (found === undefined) throw new Error(`there is no setting ${path}`);
    const { name, setting } = found;
    return [`[${path}](settings/${name}.md#${anchorOf(path)})`, setting.default ?? 'none', beyond, setting.description];
  });
  return page(
    'Limits, and what to do at each',
    'Everything that grows has a limit. Nothing of what is refused here is charged.',
    table(['setting', 'default', 'beyond it', 'what it bounds, and when it is changed'], rows),
  );
}

function headersPage(): string {
  const rows = (from: 'client' | 'gateway') =>
    headerTexts.filter((header) => header.from === from).map(({ name, text }) => [`\`${name}\``, text]);
  return page(
    'Headers',
    '## Of requests',
    table(['header', 'what it says'], rows('client')),
    '## Of answers',
    table(['header', 'what it says'], rows('gateway')),
  );
}

function metricsPage(): string {
  const rows = metrics().map(({ name, prometheus, type, unit, description }) => [
    `\`${name}\``,
    `\`${prometheus}\``,
    type,
    unit,
    description,
    labelsOf(name)
      .map((label) => `\`${label}\``)
      .join(' '),
  ]);
  return page(
    'Metrics',
    'Of the plugin `telemetry`: pages for Prometheus at `telemetry.listen`, OpenTelemetry at `telemetry.otlp`. Histograms have `_bucket`, `_sum` and `_count` behind their name for Prometheus. Those whose names begin with `gen_ai.client.inference` or `gen_ai.client.embeddings` exist with `telemetry.convention: "genai-0.1"` alone. For Prometheus the dots of labels are underscores; `error.type`, `hedge`, `gateway.model` and `gateway.provider` are absent where there is none.',
    table(['metric', 'for Prometheus', 'type', 'unit', 'what it counts', 'labels'], rows),
  );
}

function pointsPage(plugins: readonly Plugin[]): string {
  const ownerOf = (title: string) =>
    plugins.find(({ extensionPoints: own = [] }) => own.some(({ name }) => name === title))?.name ?? 'the gateway';
  const entries = extensionPoints().map(({ name, title, file, added, description, members }) => {
    const list = members.map(({ signature, text }) => `- \`${signature}\`${text === '' ? '' : `: ${text}`}`);
    return `## ${name}\n\nOwned by ${ownerOf(title)}. Added: \`${added}\` ([source](../../../${file})). ${description.replace(/ ?Owned by [^.]*\./, '')}\n\n${list.join('\n')}`.trimEnd();
  });
  return page(
    'Extension points',
    'What a plugin may add to another one: it names the point under `extends` and calls `host.extend(point, …)` in its `setup`.',
    ...entries,
  );
}

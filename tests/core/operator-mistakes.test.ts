/** Mistakes in YAML, in the list of plugins and in the gateway's own settings: the whole sentence that `check` prints of each. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { linesOf, soundFile, testMistakes } from '../helpers/operator-mistakes.ts';

const plugins = new URL('../../plugins/', import.meta.url);
const builtIn = readdirSync(plugins)
  .filter((name) => existsSync(new URL(`${name}/index.ts`, plugins)))
  .sort();

testMistakes([
  [
    'a section of a plugin that is not in the list',
    'storage:\n',
    'telemetry: { listen: 9464 }\nstorage:\n',
    'warning: gateway.yaml:4: the section "telemetry" has no effect: add "telemetry" to the list of plugins, or remove the section',
  ],
  [
    'a misspelt section',
    'rate-limit:\n',
    'rate-limits:\n',
    'gateway.yaml:11: "rate-limits" is neither a setting of a gateway nor the section of a plugin; did you mean "rate-limit"?',
  ],
  [
    'a misspelt plugin',
    'rate-limit, prov',
    'rate-limits, prov',
    'gateway.yaml:3: the plugin "rate-limits" cannot be found; did you mean "rate-limit"?',
  ],
  [
    'an unknown plugin',
    'rate-limit, prov',
    'firewall, prov',
    `gateway.yaml:3: the plugin "firewall" cannot be found: it is no built-in one (${builtIn.join(', ')}), no file and no installed package`,
  ],
  [
    'a plugin twice in the list',
    'auth, plans',
    'auth, auth, plans',
    'gateway.yaml:3: "auth" stands twice in the list: remove one.',
  ],
  [
    'a plugin too low in the list',
    'auth, plans, rate-limit, providers, models, billing',
    'plans, rate-limit, providers, models, billing, auth',
    'gateway.yaml:3: On 33 endpoints, such as GET /v1/models, "plans", "rate-limit", "models" and "billing" use the context value "caller", but "auth", which sets it, stands below: move "auth" above "plans".',
  ],
  [
    'a plugin missing in the list',
    'models, billing',
    'billing',
    'gateway.yaml:3: On 10 endpoints, such as POST /v1/chat/completions, "billing" and "route" require the context value "model", which no plugin sets: add "models" above "billing".',
  ],
  [
    'a plugin without the service that it needs',
    '[storage, request-log',
    '[request-log',
    'gateway.yaml:3: "request-log", "auth", "billing" and "shop" need the service "database", which no plugin of the list provides: add "storage" above "request-log".',
  ],
  [
    'limits that no plugin enforces',
    'plans, rate-limit',
    'plans',
    'warning: gateway.yaml:11: the section "rate-limit" has no effect: add "rate-limit" to the list of plugins, or remove the section',
    'warning: gateway.yaml:6: plans "free" and "pro" have limits (rpm), but they are not enforced: add "rate-limit" to the list',
  ],
  [
    'a plan with a price that cannot be bought',
    ', shop',
    '',
    'warning: plan "pro" has a price, but cannot be bought: add "shop" to the list',
  ],
  [
    'a misspelt setting of the gateway',
    'listen: 8080',
    'listn: 8080',
    'gateway.yaml:2: "listn" is neither a setting of a gateway nor the section of a plugin; did you mean "listen"?',
  ],
  [
    'a misspelt setting of the gateway that it needs',
    'gateway: shop',
    'gatway: shop',
    'gateway.yaml:1: "gatway" is neither a setting of a gateway nor the section of a plugin; did you mean "gateway"?',
  ],
  [
    'a misspelt setting below a section',
    'storage:\n',
    'server: { body_limits: 5MB }\nstorage:\n',
    'gateway.yaml:4: server.body_limits: there is no such setting; did you mean "body_limit"?',
  ],
  [
    'a size in words',
    'storage:\n',
    'server: { body_limit: 5 megabytes }\nstorage:\n',
    'gateway.yaml:4: server.body_limit: must be a size such as 512KB or 32MB',
  ],
  [
    'a log level that does not exist',
    'listen: 8080',
    'log: warning',
    'gateway.yaml:2: log: must be "debug", "info", "warn", "error" or "silent"; did you mean "warn"?',
  ],
  [
    'a port out of range',
    '8080',
    '99999',
    'gateway.yaml:2: listen: must be a port such as 8080, or an address such as 127.0.0.1:8080',
  ],
  [
    'an unquoted variable in braces',
    '{ connect: 5s }',
    '{ connect: ${ACME_TIME:-5s} }',
    'gateway.yaml:19: ${ACME_TIME:-5s} stands inside { } or [ ]: quote it, as in "${ACME_TIME:-5s}"',
  ],
  [
    'an unquoted variable in a list',
    'keys: "${ACME_KEY}"',
    'keys: [${ACME_KEY}]',
    'gateway.yaml:15: ${ACME_KEY} stands inside { } or [ ]: quote it, as in "${ACME_KEY}"',
  ],
  [
    'a variable that is no name',
    '"${ACME_KEY}"',
    '"${ACME-KEY}"',
    'gateway.yaml:15: ${ACME-KEY} is no variable: write ${NAME} or ${NAME:-default}',
  ],
  [
    'a variable that is not set',
    '${ACME_KEY}',
    '${ACME_KYE}',
    'gateway.yaml:15: the environment variable ACME_KYE is not set; did you mean "ACME_KEY"?',
  ],
  [
    'one unset variable at two places',
    '[acme/acme-fast]\n',
    '["acme/${ACME_MODEL}"]\n    display_name: ${ACME_MODEL}\n',
    'gateway.yaml:23: the environment variable ACME_MODEL is not set (also at gateway.yaml:24)',
  ],
  [
    'an indentation by a tab',
    '    keys:',
    '	keys:',
    'gateway.yaml:15: this line is indented by a tab; YAML is indented by spaces',
  ],
  [
    'a setting twice',
    '  database: embedded\n',
    '  database: embedded\n  database: embedded\n',
    'gateway.yaml:6: "database" stands twice in this mapping; keep one of them',
  ],
  [
    'a line with too little indentation',
    '  slow:\n',
    ' slow:\n',
    'gateway.yaml:26: this line is indented differently from the lines that it belongs to',
  ],
  [
    'a line with too much indentation',
    '    targets: [acme/acme-fast]',
    '      targets: [acme/acme-fast]',
    'gateway.yaml:22: the line below this one is indented too far',
  ],
  ['a quote without its end', '"${ACME_KEY}"', '"${ACME_KEY}', 'gateway.yaml:15: a " opens here, and no " closes it'],
  [
    'a bracket without its end',
    '[acme/acme-fast]',
    '[acme/acme-fast',
    'gateway.yaml:23: a [ opens here, and no ] closes it',
  ],
  [
    'a bracket too many',
    '[acme/acme-fast]',
    '[acme/acme-fast]]',
    'gateway.yaml:23: this line cannot be read as YAML: look for a missing or spare quote, comma, dash or bracket in it or above it',
  ],
  [
    'a colon without a space',
    'owned_by: acme\n',
    'owned_by:acme\n',
    'gateway.yaml:22: a space is missing behind the colon in "owned_by:acme"',
  ],
  [
    'a value with a colon',
    'owned_by: acme\n',
    'owned_by: acme: fast\n',
    'gateway.yaml:22: this line has two colons: quote the value if one belongs to it, otherwise write one setting in each line',
  ],
  [
    'a value that begins with @',
    'owned_by: acme\n',
    'owned_by: @acme\n',
    'gateway.yaml:22: a value that begins with @ must be quoted',
  ],
  [
    'an anchor that does not exist',
    'owned_by: acme\n',
    'owned_by: *acme\n',
    'gateway.yaml:22: *acme stands for what is marked as &acme, but nothing above is marked so',
  ],
  [
    'a file that is a list',
    'gateway: shop',
    '- gateway: shop',
    'gateway.yaml:1: a gateway file is a mapping (name: value); this one begins with a dash',
  ],
  [
    'an included file that does not exist',
    'gateway: shop',
    'include: shraed.yaml\ngateway: shop',
    'gateway.yaml:1: shraed.yaml: there is no such file',
  ],
  [
    'a list instead of a mapping',
    'providers:\n  acme:\n',
    'providers:\n  - acme:\n',
    'gateway.yaml:13: providers: must be a mapping (name: value), not a list',
  ],
  [
    'a client protocol that does not exist',
    'storage:\n',
    'protocol-convert: { expose: [openai] }\nstorage:\n',
    'gateway.yaml:4: protocol-convert.expose.0: there is no protocol "openai" for clients; known are chat, responses, messages, gemini, completions',
  ],
  [
    'an address that is none',
    'storage:\n',
    'server: { trusted_proxies: [10.0.0] }\nstorage:\n',
    'gateway.yaml:4: server.trusted_proxies.0: must be an address or a range such as 10.0.0.0/8',
  ],
  [
    'a database of another kind',
    'embedded',
    'mysql://localhost/shop',
    'gateway.yaml:5: storage.database: must be "embedded" or a URL such as postgres://user:password@host:5432/name',
  ],
  [
    'an IPv6 address without brackets',
    '8080',
    '"::1:8080"',
    'warning: gateway.yaml:2: listen: ::1:8080 is read as the address ::1 and the port 8080: write [::1]:8080',
  ],
  [
    'an IPv6 address without a port',
    '8080',
    '"::1"',
    'gateway.yaml:2: listen: must be a port such as 8080, or an address such as 127.0.0.1:8080',
  ],
  [
    'a URL to listen at',
    '8080',
    'http://localhost:8080',
    'gateway.yaml:2: listen: must be a port such as 8080, or an address such as 127.0.0.1:8080',
  ],
  [
    'an IPv6 address without brackets for the metrics',
    'shop]\n',
    'shop, telemetry]\ntelemetry: { listen: "::1:9464" }\n',
    'warning: gateway.yaml:4: telemetry.listen: ::1:9464 is read as the address ::1 and the port 9464: write [::1]:9464',
  ],
  [
    'a body that may be larger than all bodies together',
    'storage:\n',
    'server: { body_limit: 2GB }\nstorage:\n',
    'warning: gateway.yaml:4: server.body_limit (2048 MB) is above server.bodies_in_flight (1024 MB): a body between the two is always refused',
  ],
  [
    "a body that may be larger than an account's bodies together",
    'storage:\n',
    'server: { bodies_per_account: 16MB }\nstorage:\n',
    'warning: gateway.yaml:4: server.body_limit (32 MB) is above server.bodies_per_account (16 MB): a body between the two is always refused',
  ],
  [
    "an account's bodies that may be larger than all bodies together",
    'storage:\n',
    'server: { bodies_per_account: 2GB }\nstorage:\n',
    'warning: gateway.yaml:4: server.bodies_per_account (2048 MB) is above server.bodies_in_flight (1024 MB): it never holds',
  ],
  [
    'a size without its unit',
    'storage:\n',
    'server: { body_limit: 32 }\nstorage:\n',
    'warning: gateway.yaml:4: server.body_limit is 32 bytes: write the unit, as in 32MB',
  ],
  [
    'a limit of nothing',
    'storage:\n',
    'server: { headers: 0 }\nstorage:\n',
    'warning: gateway.yaml:4: server.headers is 0: no request can be served',
  ],
  [
    'a request that may take longer than its exchange',
    'storage:\n',
    'server: { timeout: 60s }\nstorage:\n',
    'warning: gateway.yaml:4: server.request_timeout is above server.timeout, in which the whole exchange must have ended: it never holds',
  ],
  [
    'proxies of the whole world',
    'storage:\n',
    'server: { trusted_proxies: [0.0.0.0/0] }\nstorage:\n',
    'warning: gateway.yaml:4: server.trusted_proxies has 0.0.0.0/0, which is every address: each client can claim any address',
  ],
  [
    'no process beside a PostgreSQL',
    'storage:\n  database: embedded',
    'billing: { nodes: 0 }\nstorage:\n  database: postgres://user@127.0.0.1:1/none',
    'warning: gateway.yaml:4: billing.nodes is 0: no process can serve from this PostgreSQL. Write 1, or leave it out',
  ],
  [
    'a journal that is full before its first file',
    'storage:\n',
    'billing: { journal: { limit: 1MB } }\nstorage:\n',
    'warning: gateway.yaml:4: billing.journal.limit is below billing.journal.segment: calls are refused before the first file is full',
  ],
  [
    'a key inside quotes in the file',
    '"${ACME_KEY}"',
    `'"quoted-key-1234"'`,
    'warning: gateway.yaml:15: the value has quotes inside of its quotes, which belong to it',
  ],
  [
    'a key inside quotes in the environment',
    '${ACME_KEY}',
    '${QUOTED}',
    'warning: gateway.yaml:15: the environment variable QUOTED has quotes around its value, which belong to it: remove them where it is set',
  ],
  [
    'a database inside quotes in the environment',
    'database: embedded',
    'database: ${QUOTED}',
    'gateway.yaml:5: storage.database: must be "embedded" or a URL such as postgres://user:password@host:5432/name; the environment variable QUOTED has quotes around its value, which belong to it: remove them where it is set',
  ],
  [
    'a secret with a line break behind it',
    'storage:\n',
    'auth: { secret: "${BROKEN}" }\nstorage:\n',
    'warning: gateway.yaml:4: the environment variable BROKEN has blanks or a line break around its value: remove them where it is set',
  ],
]);

test('several processes on one PostgreSQL without a bucket are refused; one process, or several with one directory, are not', async () => {
  const fleet = soundFile
    .replace('database: embedded', 'database: postgres://user@127.0.0.1:1/none')
    .replace('route, ', 'route, files, ')
    .concat('billing: { nodes: 2 }\nfiles: { origin: https://gateway.example }\n');
  const [line, ...others] = await linesOf(fleet);
  assert.match(line!, /files\.s3\.bucket: is needed: up to 2 processes serve from this PostgreSQL/);
  assert.deepEqual(others, []);
  for (const [from, to] of [
    ['origin:', 's3: { bucket: files }, origin:'],
    ['origin:', 'disk: shared, origin:'],
    ['nodes: 2', 'nodes: 1'],
    ['postgres://user@127.0.0.1:1/none', 'embedded'],
  ] as const)
    assert.deepEqual(await linesOf(fleet.replace(from, to)), [], to);
  assert.deepEqual(await linesOf(fleet.replace('billing: { nodes: 2 }', '')), [
    'warning: gateway.yaml:32: files.s3.bucket is not set: a second process on this PostgreSQL would not find the files of this one.',
  ]);
});

test('an archive that not every process can read is refused, and so is one of recent calls', async () => {
  const archive = 'billing: { archive: { after: 90d } }\nfiles: { origin: https://gateway.example }\n';
  const alone = soundFile.concat(archive.split('files:')[0]!);
  assert.match(
    (await linesOf(alone)).join(),
    /billing\.archive\.after: needs a place for the files of archived calls.* "files"/,
  );
  const withFiles = soundFile.replace('route, ', 'route, files, ').concat(archive);
  assert.deepEqual(await linesOf(withFiles), []);
  const fleet = withFiles.replace('database: embedded', 'database: postgres://user@127.0.0.1:1/none');
  assert.match(
    (await linesOf(fleet)).join(),
    /billing\.archive\.after: needs a place that every process reads: files\.s3\.bucket/,
  );
  const withBucket = fleet.replace('origin:', 's3: { bucket: files }, origin:');
  assert.deepEqual(await linesOf(withBucket), []);
  assert.match(
    (await linesOf(withFiles.replace('90d', '30d'))).join(),
    /billing\.archive\.after: must be at least 31d/,
  );
});

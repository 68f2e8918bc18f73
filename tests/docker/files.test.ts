/** What is shipped beside the code, held against the code: files that are named exist, variables are read, probes are answered. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { parse } from 'yaml';
import { startGateway, type TestGateway } from '../helpers/gateway.ts';
import { environmentOf, readDockerfile } from './dockerfile.ts';

const read = (path: string) => readFileSync(path, 'utf8');
const dockerfile = readDockerfile(read('docker/Dockerfile'));
const image = dockerfile.at(-1)!.instructions;
const chart = globSync('docker/helm/templates/*').map(read).join('\n');

/** Variables that the gateway's files and its code read. */
const variables = new Set(
  [...globSync('config/*.yaml'), ...globSync('{core,plugins}/**/*.ts')].flatMap((path) =>
    Array.from(
      read(path).matchAll(/\$\{([A-Z_][A-Z0-9_]*)|(?:env\[|Variable = )'([A-Z_][A-Z0-9_]*)'/g),
      ([, one, other]) => one ?? other!,
    ),
  ),
);

let gateway: TestGateway;
before(async () => {
  gateway = await startGateway('gateway: probed\nplugins: [sandbox]\n');
});
after(() => gateway.stop());

// ----------------------------------------------------------------------------------------------------------- Dockerfile

test('the Dockerfile copies files that exist, runs as an ordinary account, and starts the packed program', () => {
  for (const { instructions } of dockerfile)
    for (const { name, flags, words } of instructions)
      if (name === 'COPY' && flags['from'] === undefined)
        for (const source of words.slice(0, -1)) assert.ok(existsSync(source), `COPY ${source}`);
  const last = (name: string) => image.findLast((instruction) => instruction.name === name)!;
  assert.equal(last('USER').text, 'node');
  assert.ok(last('ENTRYPOINT').words.includes('bin.js'));
  const copies = image.filter(({ name }) => name === 'COPY').map(({ words }) => words.join(' '));
  // docker/pack.mjs makes these in dist/.
  assert.ok(copies.includes('/app/dist ./'));
  const [, program] = /commandLine = '(.*)'/.exec(read('docker/pack.mjs'))!;
  for (const path of [program!, last('CMD').words[1]!]) {
    assert.ok(existsSync(path), path);
    assert.match(path, /^(core|plugins|config)\//);
  }
  const check = last('HEALTHCHECK').words[1]!;
  assert.ok(existsSync(check) && copies.some((words) => words.startsWith(`${check} `)), `${check} is not in the image`);
  for (const variable of Object.keys(environmentOf(last('ENV'))).filter((name) => name !== 'NODE_ENV'))
    assert.ok(variables.has(variable), variable);
  assert.deepEqual(last('VOLUME').words, [environmentOf(last('ENV'))['DATA_DIR']]);
});

test('the files that the Dockerfile copies are not ignored', () => {
  const allowed = read('docker/Dockerfile.dockerignore')
    .match(/^!.*$/gm)!
    .map((line) => line.slice(1));
  for (const { name, flags, words } of dockerfile.flatMap(({ instructions }) => instructions))
    if (name === 'COPY' && flags['from'] === undefined)
      for (const source of words.slice(0, -1)) assert.ok(allowed.includes(source), source);
});

// -------------------------------------------------------------------------------------------------------- compose files

interface Service {
  readonly build?: { readonly context: string; readonly dockerfile: string };
  readonly command?: readonly string[];
  readonly environment?: Record<string, string>;
  readonly volumes?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: readonly string[] | Record<string, unknown>;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly networks?: { readonly default: { readonly aliases: readonly string[] } };
  readonly stop_grace_period?: string;
}

for (const file of globSync('docker/compose*.yaml')) {
  const { services, volumes = {} } = parse(read(file), { merge: true }) as {
    services: Record<string, Service>;
    volumes?: Record<string, unknown>;
  };

  test(`${file}: named files, volumes and services exist`, () => {
    for (const [name, { build, volumes: mounts = [], depends_on = [] }] of Object.entries(services)) {
      if (build !== undefined) assert.ok(existsSync(join('docker', build.context, build.dockerfile)), name);
      for (const needed of Array.isArray(depends_on) ? depends_on : Object.keys(depends_on))
        assert.ok(needed in services, needed);
      for (const mount of mounts) {
        const [source, inside] = mount.split(':');
        if (source!.startsWith('.')) assert.ok(existsSync(resolve('docker', source!)), source!);
        else if (inside !== undefined) assert.ok(source! in volumes, `${source} is declared`);
      }
    }
  });

  test(`${file}: the gateway gets variables that it reads, an existing file, and no privileges`, () => {
    const gateways = Object.entries(services).filter(([name]) => name.startsWith('gateway'));
    const [[, { command, environment = {}, read_only, cap_drop, stop_grace_period }]] = gateways as [[string, Service]];
    // Each keeps its journal on a volume of its own, under a name.
    assert.equal(new Set(gateways.map(([, { volumes: mounts }]) => mounts![0])).size, gateways.length);
    for (const [, { volumes: mounts }] of gateways) assert.match(mounts![0]!, /^[\w-]+:\/data$/);
    assert.equal(command![0], 'serve');
    assert.ok(existsSync(command![1]!), command![1]!);
    for (const name of Object.keys(environment)) assert.ok(variables.has(name), `nothing reads ${name}`);
    assert.deepEqual([read_only, cap_drop], [true, ['ALL']]);
    // Longer than the longest stream, which a drain waits for.
    assert.equal(stop_grace_period, '11m');
  });
}

test("nginx proxies to the gateway's port, passes streams, and repeats no sent request", () => {
  const text = read('docker/nginx.conf');
  assert.equal(text.split('{').length, text.split('}').length);
  const [, host, port] = /server (\w+):(\d+) resolve/.exec(text)!;
  const { services } = parse(read('docker/compose.scale.yaml'), { merge: true }) as {
    services: Record<string, Service>;
  };
  for (const [name, { networks }] of Object.entries(services))
    if (name.startsWith('gateway')) assert.deepEqual(networks?.default.aliases, [host]);
  assert.match(read('config/main.yaml'), new RegExp(`^listen: \\$\\{PORT:-${port}\\}$`, 'm'));
  assert.match(text, new RegExp(`listen ${services['front']!.ports![0]!.split(':')[1]};`));
  assert.match(text, /proxy_buffering off;/);
  // A POST that was sent would go to another one by the word "non_idempotent" alone.
  assert.match(text, /proxy_next_upstream error timeout;/);
});

// ---------------------------------------------------------------------------------------------------------------- chart

test('each value that the chart uses has a default, and each default is used', () => {
  const values = parse(read('docker/helm/values.yaml')) as Record<string, unknown>;
  const used = new Set(Array.from(chart.matchAll(/\.Values\.([a-zA-Z.]+)/g), ([, path]) => path!));
  for (const path of used) {
    const found = path
      .split('.')
      .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], values);
    assert.notEqual(found, undefined, path);
  }
  for (const name of Object.keys(values))
    assert.ok(
      [...used].some((path) => path.split('.')[0] === name),
      `${name} is used nowhere`,
    );
});

test("the values' schema has each value with a default, and no other", () => {
  interface Schema {
    readonly properties?: Record<string, Schema>;
    readonly additionalProperties?: unknown;
  }
  const compare = (schema: Schema, values: Record<string, unknown>, at: string) => {
    const { global: _, enabled: __, ...rest } = schema.properties!;
    const properties = at === 'values' ? rest : schema.properties!;
    assert.equal(schema.additionalProperties, false, at);
    assert.deepEqual(Object.keys(properties).sort(), Object.keys(values).sort(), at);
    for (const [name, inner] of Object.entries(properties))
      if (inner.properties !== undefined) compare(inner, values[name] as Record<string, unknown>, `${at}.${name}`);
  };
  const schema = JSON.parse(read('docker/helm/values.schema.json')) as Schema;
  compare(schema, parse(read('docker/helm/values.yaml')) as Record<string, unknown>, 'values');
});

test('the chart sets variables that the gateway reads, and names a file of the image', () => {
  for (const [, name] of chart.matchAll(/\{ name: ([A-Z_]+), value:/g)) assert.ok(variables.has(name!), name!);
  const { config, terminationGracePeriodSeconds } = parse(read('docker/helm/values.yaml')) as Record<string, string>;
  const { include } = parse(config!) as { include: string };
  assert.ok(existsSync(include.replace('/app/', '')), String(include));
  assert.ok(Number(terminationGracePeriodSeconds) > 600);
});

test('the ledger allows as many processes as a rollout of all replicas runs at once', () => {
  const { replicas, autoscaling } = parse(read('docker/helm/values.yaml')) as {
    replicas: number;
    autoscaling: { maxReplicas: number };
  };
  const atOnce = 2 * Math.max(replicas, autoscaling.maxReplicas);
  const [, byDefault] = /nodes: \$\{BILLING_NODES:-(\d+)\}/.exec(read('config/fleet.yaml'))!;
  assert.ok(Number(byDefault) >= atOnce, `config/fleet.yaml: billing.nodes is ${byDefault}, the chart needs ${atOnce}`);
  // The chart works it out from the values that somebody sets, under the name that the file reads.
  const twice = 'mul 2 (max (int .Values.replicas) (int .Values.autoscaling.maxReplicas))';
  assert.ok(chart.includes(`{ name: BILLING_NODES, value: {{ ${twice} | quote }} }`));
});

test('probes and health checks request existing addresses', async () => {
  const probed = Array.from(chart.matchAll(/httpGet: \{ path: (\S+), port/g), ([, path]) => path!);
  const checked = Array.from(read('docker/health.mjs').matchAll(/\$\{port\}(\/\w+)/g), ([, path]) => path!);
  assert.deepEqual([probed.length, checked.length], [3, 1]);
  for (const path of [...probed, ...checked]) assert.equal((await fetch(gateway.origin + path)).status, 200, path);
});

// ---------------------------------------------------------------------------------------------------------------- words

test('README names each file of the folder, and no other', () => {
  const text = read('docker/README.md');
  const table = text.slice(0, text.indexOf('```'));
  const named = Array.from(table.matchAll(/`([\w./-]+)`(?=[^|]*\|[^|]*\|$)/gm), ([, name]) => name!);
  for (const name of named) assert.ok(existsSync(join('docker', name)), name);
  for (const path of globSync('docker/*').map((each) => each.slice('docker/'.length)))
    assert.ok(path === 'README.md' || named.some((name) => name.split('/')[0] === path), `${path} is not explained`);
});

test('image and chart have the version of the package', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  assert.match(
    read('docker/Dockerfile'),
    new RegExp(`org\\.opencontainers\\.image\\.version=${RegExp.escape(version)} `),
  );
  for (const name of ['version', 'appVersion'])
    assert.match(read('docker/helm/Chart.yaml'), new RegExp(`^${name}: ${RegExp.escape(version)}$`, 'm'));
});

test('each version since 0.1.0 has upgrade notes', () => {
  const { version } = JSON.parse(read('package.json')) as { version: string };
  const released = Array.from(read('CHANGELOG.md').matchAll(/^## \[?(\d+\.\d+\.\d+)/gm), ([, each]) => each!);
  const text = read('docker/README.md');
  const notes = text.slice(text.indexOf('## Upgrades, by version'), text.indexOf('## Backup and restore'));
  const noted = Array.from(notes.matchAll(/^### (\S+)$/gm), ([, each]) => each!);
  assert.equal(noted[0], '0.1.0');
  for (const each of [version, ...released]) assert.ok(noted.includes(each), each);
});

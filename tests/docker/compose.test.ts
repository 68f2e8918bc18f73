/** compose.scale.yaml and the chart, service by service as they are written: on this machine's PostgreSQL, Redis and nginx, and behind ports of its own. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { freePort } from '../helpers/free-port.ts';
import { hasPostgres } from '../helpers/postgres.ts';
import { hasRedis } from '../helpers/redis.ts';
import { type Container, hasNginx, runContainer, startContainer, startFront } from './containers.ts';
import { gatewayService, interpolate, type Stores, services, settings, startStores } from './services.ts';
import { installedHelm } from './tools.ts';

const helm = installedHelm();

let stores: Stores;
const gateways: Container[] = [];
const portOf = ({ origin }: Container) => Number(new URL(origin).port);

if (hasPostgres && hasRedis) {
  before(async () => {
    stores = await startStores();
    for (let index = 0; index < 2; index += 1)
      gateways.push(await startContainer(gatewayService.command, stores.variables));
  });
  after(async () => {
    await Promise.all(gateways.map((gateway) => gateway.kill()));
    await stores?.close();
  });
}
const testOfFleet = hasPostgres && hasRedis ? test : () => {};
const testOfFront = hasNginx ? testOfFleet : () => {};
const testOfPod = helm === undefined ? () => {} : testOfFleet;
const testOfChart = helm === undefined ? () => {} : test;

test('a missing required variable stops compose, and optional ones have defaults', () => {
  const { DATABASE_URL = '', S3_BUCKET = '', S3_SECRET_ACCESS_KEY = '' } = gatewayService.environment;
  assert.throws(() => interpolate(DATABASE_URL, {}), /POSTGRES_PASSWORD/);
  assert.throws(() => interpolate(S3_SECRET_ACCESS_KEY, {}), /S3_SECRET_ACCESS_KEY/);
  assert.equal(interpolate(S3_BUCKET, {}), 'gateway');
  assert.equal(interpolate(DATABASE_URL, settings), 'postgres://gateway:a-password@postgres:5432/gateway');
});

testOfFleet('the stores are healthy by their own checks, and Redis has the settings of its command', () => {
  const { postgres, redis } = stores;
  assert.equal(postgres.sql('select current_user'), services.postgres.environment['POSTGRES_USER']);
  const [program, ...words] = services.postgres.healthcheck.test[1]!.split(' ');
  assert.match(postgres.run(program!, ...words), /accepting connections/);
  const [, client, ...question] = services.redis.healthcheck.test;
  assert.equal(client, 'redis-cli');
  assert.equal(redis.command(...question), 'PONG');
  assert.match(redis.command('config', 'get', 'maxmemory-policy'), /volatile-ttl/);
  assert.match(redis.command('config', 'get', 'appendonly'), /no/);
});

testOfFleet(
  "gateways with the service's command and variables are ready, healthy, and accept each other's keys",
  async () => {
    const [one, other] = gateways;
    for (const gateway of gateways) assert.equal(gateway.isHealthy(), true);
    const file = gatewayService.command.at(-1)!;
    one!.run('accounts', 'create', 'alice', '--credit', '1', '--config', file);
    const made = one!.run('keys', 'create', '--account', 'alice', '--config', file);
    const [key] = /sk-gw-\w+/.exec(made)!;
    for (const { origin } of [one!, other!]) {
      const answer = await fetch(`${origin}/v1/tasks`, { headers: { authorization: `Bearer ${key}` } });
      assert.deepEqual([answer.status, ((await answer.json()) as { data: unknown[] }).data], [200, []]);
    }
    assert.ok(stores.redis.command('client', 'list').split('\n').length > gateways.length, 'they are at Redis');
  },
);

testOfFront('nginx proxies to all gateways, logs no keys, and serves on when one is gone', async (context) => {
  const ports = gateways.map(portOf);
  const front = await startFront(ports);
  context.after(() => front.close());
  const listed = async (count: number) => {
    for (let index = 0; index < count; index += 1) {
      const answer = await fetch(`${front.origin}/v1beta/models?key=sk-gw-secret`);
      const text = await answer.text();
      assert.equal(answer.status, 200, text);
    }
  };
  await listed(10);
  for (const port of ports)
    assert.match(front.lines(), new RegExp(`"GET /v1beta/models" 200 .* 127\\.0\\.0\\.1:${port}$`, 'm'));
  assert.doesNotMatch(front.lines(), /sk-gw|key=/);
  assert.equal((await fetch(`${front.origin}/v1/messages`, { method: 'POST', body: '{}' })).status, 401);
  await gateways.pop()!.kill();
  await listed(20);
});

testOfFront("nginx relays a stream piece by piece, the client's own address, and an upgrade", async (context) => {
  const { server, proceed } = await startStreaming();
  context.after(() => server.close());
  const front = await startFront([(server.address() as AddressInfo).port]);
  context.after(() => front.close());
  const answer = await fetch(`${front.origin}/stream`, { headers: { 'x-forwarded-for': '203.0.113.9' } });
  assert.equal(answer.headers.get('x-seen'), '127.0.0.1', 'what a client says of itself is not believed');
  const reader = answer.body!.getReader();
  const piece = async () => Buffer.from((await reader.read()).value!).toString();
  // It would never come if it were kept until the end.
  assert.equal(await piece(), 'data: first\n\n');
  proceed();
  assert.equal(await piece(), 'data: last\n\n');
  const socket = connect(Number(new URL(front.origin).port), '127.0.0.1').setEncoding('utf8');
  context.after(() => socket.destroy());
  socket.write('GET /console/live HTTP/1.1\r\nhost: gateway\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n');
  const [head] = (await once(socket, 'data')) as [string];
  assert.match(head, /^HTTP\/1\.1 101 /);
  socket.write('hello');
  assert.deepEqual(await once(socket, 'data'), ['hello']);
});

/** Answers with two events, the second one when it may; an upgrade is an echo. */
async function startStreaming(): Promise<{ server: Server; proceed: () => void }> {
  const { promise: mayEnd, resolve: proceed } = Promise.withResolvers<void>();
  const server = createServer(async ({ url, headers }, outgoing) => {
    const seen = String(headers['x-forwarded-for']);
    outgoing.writeHead(200, { 'content-type': 'text/event-stream', 'x-seen': seen });
    outgoing.write('data: first\n\n');
    if (url === '/stream') await mayEnd;
    outgoing.end('data: last\n\n');
  });
  server.on('upgrade', (_, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n');
    socket.pipe(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { server, proceed };
}

const render = async (...words: string[]): Promise<Manifest[]> => {
  // A helm that was built from its module alone takes Kubernetes to be older than the chart allows.
  const usual = ['template', 'try', 'docker/helm', '--kube-version', '1.37', '--set', 'bucket.name=files'];
  const { stdout } = await promisify(execFile)(helm!, [...usual, ...words]);
  return parseAllDocuments(stdout).map((each) => each.toJS() as Manifest);
};
const kindOf = (manifests: readonly Manifest[], kind: string) => manifests.find((each) => each.kind === kind)!;

interface Manifest {
  readonly kind: string;
  readonly metadata: { name: string; annotations?: Record<string, string> };
  readonly data?: Record<string, string>;
  readonly spec?: {
    selector?: Record<string, string>;
    template?: {
      metadata: Metadata;
      spec: { containers: readonly Contained[]; initContainers?: readonly Contained[] };
    };
    metrics?: { pods: { metric: { name: string } } }[];
  };
}
interface Metadata {
  readonly annotations: Record<string, string>;
  readonly labels: Record<string, string>;
}
interface Contained {
  readonly args: readonly string[];
  readonly env: readonly { name: string; value: string }[];
  readonly startupProbe: { httpGet: { path: string } };
  readonly livenessProbe: { httpGet: { path: string } };
  readonly readinessProbe: { httpGet: { path: string } };
}

/** What a container of the chart runs: its arguments with the file as this machine has it, its variables, and those of the secret. */
function asContainer(manifests: readonly Manifest[], { args, env }: Contained, directory: string) {
  const file = join(directory, 'gateway.yaml');
  // In the image the project stands under /app.
  const text = kindOf(manifests, 'ConfigMap').data!['gateway.yaml']!;
  writeFileSync(file, text.replace('/app/', `${process.cwd()}/`));
  const secret = ['DATABASE_URL', 'REDIS_URL', 'SEAL_SECRET', 'AUTH_SECRET'] as const;
  return {
    words: args.map((word) => word.replace('/etc/gateway/gateway.yaml', file)),
    variables: {
      ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
      ...Object.fromEntries(secret.map((name) => [name, stores.variables[name]!])),
    },
  };
}

testOfPod(
  'a pod of the chart starts with its arguments, file and variables, answers its probes and reports the metric that scales it',
  async (context) => {
    const manifests = await render('--set', 'autoscaling.enabled=true');
    const of = (kind: string) => kindOf(manifests, kind);
    const [pod] = of('StatefulSet').spec!.template!.spec.containers;
    const directory = mkdtempSync(join(tmpdir(), 'chart-'));
    context.after(() => rmSync(directory, { recursive: true, force: true }));
    const { words, variables } = asContainer(manifests, pod!, directory);
    const metricsPort = await freePort();
    const own = { METRICS_LISTEN: variables['METRICS_LISTEN']!.replace(/\d+$/, `${metricsPort}`) };
    const running = await startContainer(words, { ...variables, ...own });
    try {
      for (const { httpGet } of [pod!.startupProbe, pod!.livenessProbe, pod!.readinessProbe])
        assert.equal((await fetch(running.origin + httpGet.path)).status, 200, httpGet.path);
      const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      const { name } = of('HorizontalPodAutoscaler').spec!.metrics![0]!.pods.metric;
      assert.match(metrics, new RegExp(`^${name}\\b`, 'm'));
      assert.equal(await running.stop(), 0);
    } finally {
      await running.kill();
    }
  },
);

testOfPod(
  'the migration runs before any gateway, with its variables, on an empty database and on a full one',
  async (context) => {
    const manifests = await render();
    const job = kindOf(manifests, 'Job');
    assert.equal(job.metadata.annotations!['helm.sh/hook'], 'pre-install,pre-upgrade');
    const { metadata, spec } = job.spec!.template!;
    for (const { kind, spec: service } of manifests.filter(({ kind }) => kind === 'Service'))
      assert.notDeepEqual({ ...metadata.labels, ...service!.selector }, metadata.labels, `${kind}: it is no gateway`);
    const directory = mkdtempSync(join(tmpdir(), 'chart-'));
    context.after(() => rmSync(directory, { recursive: true, force: true }));
    const { words, variables } = asContainer(manifests, spec.containers[0]!, directory);
    stores.postgres.sql('create database migrated');
    const own = { DATABASE_URL: variables['DATABASE_URL']!.replace(/\/gateway$/, '/migrated') };
    for (let time = 0; time < 2; time += 1)
      assert.match(await runContainer(words, { ...variables, ...own }), /billing {2,}001-/);
    const [init] = kindOf(await render('--set', 'migration.by=init'), 'StatefulSet').spec!.template!.spec
      .initContainers!;
    assert.deepEqual([init!.args, init!.env], [spec.containers[0]!.args, spec.containers[0]!.env]);
  },
);

testOfChart('pods are replaced exactly when their file or their secrets have changed', async (context) => {
  const read = async (...words: string[]) =>
    kindOf(await render(...words), 'StatefulSet').spec!.template!.metadata.annotations;
  const annotations = await read();
  assert.deepEqual(await read('--set', 'replicas=5'), annotations);
  assert.notDeepEqual(await read('--set', 'config=gateway: other'), annotations);

  const secrets: Record<string, Record<string, string>> = { 'model-gateway': { DATABASE_URL: 'YQ==' } };
  const cluster = await startCluster(secrets);
  context.after(() => cluster.server.close());
  const requested = [
    '--dry-run=server',
    '--kube-apiserver',
    cluster.origin,
    '--set',
    'extraEnvFrom[0].secretRef.name=vendors',
  ];
  const sum = async () => (await read(...requested))['checksum/variables'];
  const before = await sum();
  assert.match(before!, /^[0-9a-f]{64}$/);
  assert.equal(await sum(), before);
  secrets['vendors'] = { OPENAI_API_KEY: 'Yg==' };
  const more = await sum();
  assert.notEqual(more, before);
  secrets['model-gateway'] = { DATABASE_URL: 'Yw==' };
  assert.notEqual(await sum(), more);
});

testOfChart('an ingress passes large bodies and long streams, with the controller of its class', async () => {
  const read = async (...values: string[]) =>
    kindOf(await render('--set', ['ingress.enabled=true', ...values].join(',')), 'Ingress').metadata.annotations ?? {};
  const usual = await read();
  const nginx = (name: string) => usual[`nginx.ingress.kubernetes.io/${name}`];
  assert.deepEqual(['proxy-body-size', 'proxy-read-timeout', 'proxy-buffering'].map(nginx), ['64m', '610', 'off']);
  const ofOperator = await read('ingress.annotations.nginx\\.ingress\\.kubernetes\\.io/proxy-body-size=1g');
  assert.deepEqual(ofOperator, { ...usual, 'nginx.ingress.kubernetes.io/proxy-body-size': '1g' });
  assert.match(JSON.stringify(await read('ingress.className=alb')), /idle_timeout\.timeout_seconds=610/);
  assert.match(JSON.stringify(await read('ingress.className=haproxy')), /"haproxy\.org\/timeout-server":"610s"/);
  assert.deepEqual(await read('ingress.className=gce'), {});
});

/** As much of an API server as helm needs to look secrets up. */
async function startCluster(secrets: Readonly<Record<string, Record<string, string>>>) {
  const resources = ['secrets', 'configmaps'].map((name) => ({
    name,
    kind: name === 'secrets' ? 'Secret' : 'ConfigMap',
    namespaced: true,
    verbs: ['get'],
  }));
  const server = createServer(({ url = '' }, outgoing) => {
    const [, secret] = /^\/api\/v1\/namespaces\/default\/secrets\/([\w-]+)/.exec(url) ?? [];
    const data = secrets[secret ?? ''];
    const [status, body] = url.startsWith('/api/v1?')
      ? [200, { kind: 'APIResourceList', groupVersion: 'v1', resources }]
      : data === undefined
        ? [404, { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason: 'NotFound', code: 404 }]
        : [200, { kind: 'Secret', apiVersion: 'v1', metadata: { name: secret }, data }];
    outgoing.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

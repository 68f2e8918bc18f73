/** compose.scale.yaml and the chart, service by service as they are written: on this machine's PostgreSQL, Redis and nginx, and behind ports of its own. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { freePort } from '../helpers/free-port.ts';
import { hasPostgres } from '../helpers/postgres.ts';
import { hasRedis } from '../helpers/redis.ts';
import { type Container, startContainer, startFront } from './containers.ts';
import { gatewayService, interpolate, type Stores, services, settings, startStores } from './services.ts';

// nginx keeps bodies in directories that root alone may use.
const hasNginx = existsSync('/usr/sbin/nginx') && process.getuid?.() === 0;
const hasHelm = (() => {
  try {
    execFileSync('helm', ['version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
})();

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
const testOfChart = hasHelm ? testOfFleet : () => {};

test('what must be set stops compose, what may be left out has a default', () => {
  const { DATABASE_URL = '', S3_BUCKET = '', S3_SECRET_ACCESS_KEY = '' } = gatewayService.environment;
  assert.throws(() => interpolate(DATABASE_URL, {}), /POSTGRES_PASSWORD/);
  assert.throws(() => interpolate(S3_SECRET_ACCESS_KEY, {}), /S3_SECRET_ACCESS_KEY/);
  assert.equal(interpolate(S3_BUCKET, {}), 'gateway');
  assert.equal(interpolate(DATABASE_URL, settings), 'postgres://gateway:a-password@postgres:5432/gateway');
});

testOfFleet('the stores are healthy by their own checks, and Redis is as its command says', () => {
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
  'gateways with the service’s command and variables are ready, healthy, and know each other’s keys',
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

testOfFront('nginx leads to all of them, writes no keys down, and answers on when one is gone', async (context) => {
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

testOfFront('nginx passes a stream on piece by piece, the client’s own address, and an upgrade', async (context) => {
  const { server, goOn } = await startStreaming();
  context.after(() => server.close());
  const front = await startFront([(server.address() as AddressInfo).port]);
  context.after(() => front.close());
  const answer = await fetch(`${front.origin}/stream`, { headers: { 'x-forwarded-for': '203.0.113.9' } });
  assert.equal(answer.headers.get('x-seen'), '127.0.0.1', 'what a client says of itself is not believed');
  const reader = answer.body!.getReader();
  const piece = async () => Buffer.from((await reader.read()).value!).toString();
  // It would never come if it were kept until the end.
  assert.equal(await piece(), 'data: first\n\n');
  goOn();
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
async function startStreaming(): Promise<{ server: Server; goOn: () => void }> {
  const { promise: mayEnd, resolve: goOn } = Promise.withResolvers<void>();
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
  return { server, goOn };
}

const render = (...words: string[]): Manifest[] =>
  parseAllDocuments(
    // A helm that was built from its module alone takes Kubernetes to be older than the chart allows.
    execFileSync(
      'helm',
      ['template', 'try', 'docker/helm', '--kube-version', '1.37', '--set', 'bucket.name=files', ...words],
      { encoding: 'utf8' },
    ),
  ).map((each) => each.toJS() as Manifest);
const kindOf = (manifests: readonly Manifest[], kind: string) => manifests.find((each) => each.kind === kind)!;

interface Manifest {
  readonly kind: string;
  readonly data?: Record<string, string>;
  readonly spec?: {
    template?: { metadata: { annotations: Record<string, string> }; spec: { containers: readonly Contained[] } };
    metrics?: { pods: { metric: { name: string } } }[];
  };
}
interface Contained {
  readonly args: readonly string[];
  readonly env: readonly { name: string; value: string }[];
  readonly startupProbe: { httpGet: { path: string } };
  readonly livenessProbe: { httpGet: { path: string } };
  readonly readinessProbe: { httpGet: { path: string } };
}

testOfChart(
  'a pod of the chart starts with its arguments, file and variables, answers its probes and measures what scales it',
  async () => {
    const manifests = render('--set', 'autoscaling.enabled=true');
    const of = (kind: string) => kindOf(manifests, kind);
    const [pod] = of('StatefulSet').spec!.template!.spec.containers;
    const directory = mkdtempSync(join(tmpdir(), 'chart-'));
    const file = join(directory, 'gateway.yaml');
    // In the image the project stands under /app.
    writeFileSync(file, of('ConfigMap').data!['gateway.yaml']!.replace('/app/', `${process.cwd()}/`));
    const given = Object.fromEntries(pod!.env.map(({ name, value }) => [name, value]));
    const metricsPort = await freePort();
    const { DATABASE_URL, REDIS_URL, SEAL_SECRET, AUTH_SECRET } = stores.variables;
    const secrets = {
      DATABASE_URL: DATABASE_URL!,
      REDIS_URL: REDIS_URL!,
      SEAL_SECRET: SEAL_SECRET!,
      AUTH_SECRET: AUTH_SECRET!,
    };
    const own = { METRICS_LISTEN: given['METRICS_LISTEN']!.replace(/\d+$/, `${metricsPort}`) };
    const args = pod!.args.map((word) => word.replace('/etc/gateway/gateway.yaml', file));
    const running = await startContainer(args, { ...given, ...secrets, ...own });
    try {
      for (const { httpGet } of [pod!.startupProbe, pod!.livenessProbe, pod!.readinessProbe])
        assert.equal((await fetch(running.origin + httpGet.path)).status, 200, httpGet.path);
      const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      const { name } = of('HorizontalPodAutoscaler').spec!.metrics![0]!.pods.metric;
      assert.match(metrics, new RegExp(`^${name}\\b`, 'm'));
      assert.equal(await running.stop(), 0);
    } finally {
      await running.kill();
      rmSync(directory, { recursive: true, force: true });
    }
  },
);

testOfChart('pods are replaced when their file has changed, and only then', () => {
  const told = (...words: string[]) => kindOf(render(...words), 'StatefulSet').spec!.template!;
  const { annotations } = told().metadata;
  assert.deepEqual(told('--set', 'replicas=5').metadata.annotations, annotations);
  assert.notDeepEqual(told('--set', 'config=gateway: other').metadata.annotations, annotations);
});

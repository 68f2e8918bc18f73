/**
 * `npm run test:image`: builds the Dockerfile with buildah and runs the image as a container would run it: with its own configuration, as
 * its own account, with a root that cannot be written. The demo must become ready and healthy, keep its data over a restart, and finish a
 * running stream after the stop signal; the image's own command must serve the console; a gateway of compose.scale.yaml is
 * started where PostgreSQL and Redis are installed. The image may add so many megabytes to its base and no more.
 * Exit 77: this machine cannot (it needs root on Linux, mount namespaces, buildah and mmdebstrap).
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../helpers/free-port.ts';
import { hasPostgresPrograms } from '../helpers/postgres.ts';
import { hasRedis } from '../helpers/redis.ts';
import { type ImageConfig, ImageStore, installBuildTools } from './buildah.ts';
import { readDockerfile } from './dockerfile.ts';
import { canMakeRooms, type Room, startInRoom } from './room.ts';
import { gatewayService, startStores } from './services.ts';

const cannot = 77;
const mostMegabytes = 150;
const readyWithinMs = 120_000;
const dockerfile = 'docker/Dockerfile';
const imageName = 'model-gateway';

const obstacle = canMakeRooms() ? installBuildTools() : 'It needs root on Linux, and mount namespaces.';
if (obstacle !== undefined) {
  console.error(`${obstacle} Nothing was tried.`);
  process.exit(cannot);
}

const directory = mkdtempSync(join(tmpdir(), 'image-'));
const store = new ImageStore(join(directory, 'images'));
let config: ImageConfig;
let root: string;
const running = new Set<ChildProcess>();

try {
  const [base] = readDockerfile(readFileSync(dockerfile, 'utf8')).map(({ image }) => image);
  console.log(`making ${base} of Debian packages and this machine's Node`);
  store.makeBase(base!);
  store.build(dockerfile, imageName);
  config = store.configOf(imageName);
  root = store.mount(imageName);
  checkSize(base!);
  await tryDemo();
  await tryCommand(config.Cmd, {});
  if (hasPostgresPrograms && hasRedis) await tryFleet();
  else console.log('PostgreSQL or Redis is not installed: no fleet was tried');
  console.log('the image was built, and serves');
} finally {
  for (const process of running) process.kill('SIGKILL');
  store.close();
  rmSync(directory, { recursive: true, force: true });
}

/** What it takes on disk and as it is sent, with and without the base; a base of Node's own has other tools, so its size differs. */
function checkSize(base: string): void {
  const megabytes = (bytes: number) => Math.round(bytes / 1e6);
  const bytesOf = (path: string) =>
    Number(/^\d+/.exec(execFileSync('du', ['-sk', path], { encoding: 'utf8' }))![0]) * 1024;
  const [all, below] = [bytesOf(root), bytesOf(store.mount(base))];
  const packages = megabytes(bytesOf(join(root, config.WorkingDir, 'node_modules')));
  console.log(
    `${megabytes(all - below)} MB above its base, ${packages} MB of them packages; with the base ${megabytes(all)} MB`,
  );
  const [sent, sentBelow] = [store.compressedBytes(imageName), store.compressedBytes(base)];
  console.log(`compressed: ${megabytes(sent - sentBelow)} MB above its base, with it ${megabytes(sent)} MB`);
  assert.ok(megabytes(all - below) <= mostMegabytes, `the image adds more than ${mostMegabytes} MB to its base`);
  const { bomFormat, components } = JSON.parse(readFileSync(join(root, config.WorkingDir, 'sbom.cdx.json'), 'utf8'));
  assert.ok(bomFormat === 'CycloneDX' && components.length > 100, 'its bill of materials is not in it');
}

/** Each volume as an engine makes it: with the content and the owner that the directory has in the image. */
function makeVolumes(): Room['volumes'] {
  const own = mkdtempSync(join(directory, 'volumes-'));
  return Object.fromEntries(
    Object.keys(config.Volumes).map((inside) => {
      const path = join(own, inside);
      mkdirSync(join(path, '..'), { recursive: true });
      execFileSync('cp', ['-a', join(root, inside), path]);
      return [inside, path];
    }),
  );
}

function roomFor(variables: Readonly<Record<string, string>>, volumes: Room['volumes']): Room {
  const ofImage = Object.fromEntries(config.Env.map((each) => each.split(/=(.*)/s) as [string, string]));
  const environment = { ...ofImage, ...variables };
  return { root, directory: config.WorkingDir, environment, user: config.User, volumes };
}

interface Running {
  readonly process: ChildProcess;
  readonly origin: string;
  output(): string;
  isHealthy(): Promise<boolean>;
}

/** Resolves when it is ready. */
async function start(command: readonly string[], more: Readonly<Record<string, string>>, volumes: Room['volumes']) {
  const port = await freePort();
  const room = roomFor({ ...more, PORT: `${port}` }, volumes);
  const startedAt = performance.now();
  const process = startInRoom([...config.Entrypoint, ...command], room);
  running.add(process);
  process.once('exit', () => running.delete(process));
  let output = '';
  process.stdout!.on('data', (chunk) => {
    output += chunk;
  });
  const isHealthy = async () => {
    const check = startInRoom(config.Healthcheck.Test.slice(1), room);
    return ((await once(check, 'exit')) as [number | null])[0] === 0;
  };
  const origin = `http://127.0.0.1:${port}`;
  while ((await fetch(`${origin}/readyz`).catch(() => undefined))?.status !== 200) {
    assert.equal(process.exitCode, null, `the gateway ended at its start: ${output}`);
    assert.ok(performance.now() - startedAt < readyWithinMs, `it is not ready: ${output}`);
    await pause(20);
  }
  console.log(`${command.join(' ')}: ready after ${Math.round(performance.now() - startedAt)} ms`);
  assert.equal(await isHealthy(), true, 'the health check fails');
  return { process, origin, output: () => output, isHealthy } satisfies Running;
}

async function stop({ process, isHealthy }: Running): Promise<void> {
  const exit = once(process, 'exit') as Promise<[number | null]>;
  process.kill(config.StopSignal as NodeJS.Signals);
  assert.equal((await exit)[0], 0);
  assert.equal(await isHealthy(), false, 'the health check succeeds although nothing listens');
}

/** A stream that runs when the stop signal comes reaches its end, and the key of the first start is good after the second. */
async function tryDemo(): Promise<void> {
  const command = ['serve', 'config/demo.yaml'];
  const volumes = makeVolumes();
  await checkRights(volumes);
  const first = await start(command, {}, volumes);
  const key = await keyOf(first);
  await checkCommandBeside(volumes);
  const stream = await send(first, key, true, 'Hello [[sandbox: chunks=20 chunk_delay=100ms]]');
  const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = (await reader.read()).value!;
  const stopped = stop(first);
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) text += piece.value;
  assert.match(text, /data: \[DONE\]\n\n$/, 'the stream was cut');
  await stopped;
  const second = await start(command, {}, volumes);
  assert.equal((await send(second, key, false, 'Hello')).status, 200);
  await stop(second);
}

/** That its greeting shows, which comes a little after it is ready. */
async function keyOf({ output }: Running): Promise<string> {
  for (const until = performance.now() + readyWithinMs; performance.now() < until; await pause(50)) {
    const found = /its key is shown only now".*?"key":"([^"]+)"/.exec(output());
    if (found !== null) return found[1]!;
  }
  throw new Error(`it shows no key: ${output()}`);
}

/** As `docker compose exec` runs it. */
async function checkCommandBeside(volumes: Room['volumes']): Promise<void> {
  const words = [...config.Entrypoint, 'accounts', 'list', '--config', 'config/demo.yaml'];
  const command = startInRoom(words, roomFor({}, volumes));
  command.stdout!.resume();
  assert.equal((await once(command, 'exit'))[0], 0, 'a command beside the gateway fails');
}

function send({ origin }: Running, key: string, stream: boolean, content: string): Promise<Response> {
  return fetch(`${origin}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-5.4-mini', stream, messages: [{ role: 'user', content }] }),
  });
}

/** The account may write to volumes and /tmp, and to nothing else. */
async function checkRights(volumes: Room['volumes']): Promise<void> {
  assert.ok(!['', '0', 'root'].includes(config.User), 'the image runs as root');
  const may = Object.keys(volumes)
    .concat('/tmp')
    .map((path) => `touch ${path}/trial && rm ${path}/trial`);
  const mayNot = [config.WorkingDir, '/usr', '/etc', '/var/tmp'].map((path) => `! touch ${path}/trial 2>/dev/null`);
  const check = startInRoom(['sh', '-ec', [...may, ...mayNot].join(' && ')], roomFor({}, volumes));
  assert.equal((await once(check, 'exit'))[0], 0, 'the root can be written, or a volume cannot');
}

async function tryCommand(command: readonly string[], more: Readonly<Record<string, string>>): Promise<void> {
  const running = await start(command, more, makeVolumes());
  assert.equal((await fetch(`${running.origin}/v1/models`)).status, 200);
  assert.equal((await fetch(`${running.origin}/console/`)).status, 200, 'the console has no pages');
  await stop(running);
}

/** As compose.scale.yaml says. */
async function tryFleet(): Promise<void> {
  const stores = await startStores();
  try {
    await tryCommand(gatewayService.command, stores.variables);
  } finally {
    await stores.close();
  }
}

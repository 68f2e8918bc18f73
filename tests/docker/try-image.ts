/**
 * `npm run test:image`: does what the Dockerfile says, step by step, in empty directories that become
 * the root of what runs in them, then serves as the image would: not as root, with a root that cannot be written. Its health
 * check must succeed, it must answer, and end at SIGTERM; then once more as a gateway of compose.scale.yaml, where PostgreSQL
 * and Redis are installed. Packages come from npm's cache or registry.
 * Exit 77: this machine cannot (it needs root on Linux, for mount namespaces).
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { hasPostgresPrograms } from '../helpers/postgres.ts';
import { freePort, hasRedis } from '../helpers/redis.ts';
import { environmentOf, readDockerfile, type Stage } from './dockerfile.ts';
import { canMakeRooms, makeRoom, type Room, type Where } from './room.ts';
import { services, startStores } from './services.ts';

const cannot = 77;
const readyWithinMs = 60_000;

if (!canMakeRooms()) {
  console.error('Needs root on Linux, and mount namespaces. Nothing was tried.');
  process.exit(cannot);
}

const base = mkdtempSync(join(tmpdir(), 'image-'));
const stages = readDockerfile(readFileSync('docker/Dockerfile', 'utf8'));
const built = new Map<string, Room>();

interface Image {
  readonly room: Room;
  readonly where: Where;
  readonly volumes: readonly string[];
  readonly entry: readonly string[];
  readonly command: readonly string[];
  readonly health: readonly string[];
}

try {
  let image: Image | undefined;
  for (const [index, stage] of stages.entries()) image = await build(stage, join(base, `stage-${index}`));
  await serve(image!, image!.command, {});
  await serveOfFleet(image!);
  tellSize(image!);
} finally {
  rmSync(base, { recursive: true, force: true });
}

async function build(stage: Stage, root: string): Promise<Image> {
  mkdirSync(root);
  const room = makeRoom(root);
  if (stage.name !== undefined) built.set(stage.name, room);
  let where: Where = { directory: '/', environment: {} };
  const image = { volumes: [] as string[], entry: [] as string[], command: [] as string[], health: [] as string[] };
  for (const instruction of stage.instructions) {
    const { name, flags, text, words } = instruction;
    console.log(`${name} ${text}`);
    const startedAt = performance.now();
    if (name === 'WORKDIR') mkdirSync(join(root, text), { recursive: true });
    if (name === 'WORKDIR') where = { ...where, directory: text };
    else if (name === 'ENV') where = { ...where, environment: { ...where.environment, ...environmentOf(instruction) } };
    else if (name === 'COPY') copy(words, flags['from'], join(root, where.directory));
    else if (name === 'RUN') await room.run(text, where);
    else if (name === 'USER') where = { ...where, user: text };
    else if (name === 'VOLUME') image.volumes.push(...words);
    else if (name === 'ENTRYPOINT') image.entry.push(...words);
    else if (name === 'CMD') image.command.push(...words);
    else if (name === 'HEALTHCHECK') image.health.push(...words);
    const tookSeconds = (performance.now() - startedAt) / 1_000;
    if (tookSeconds > 0.5) console.log(`  ${tookSeconds.toFixed(1)} s`);
  }
  return { room, where, ...image };
}

/** From the project or another stage. Of the project without what .dockerignore leaves out. */
function copy(words: readonly string[], from: string | undefined, directory: string): void {
  const target = resolve(directory, words.at(-1)!);
  for (const source of words.slice(0, -1)) {
    const path = from === undefined ? resolve(source) : join(built.get(from)!.root, source);
    assert.ok(existsSync(path), `COPY ${source}: it is not there`);
    const into = words.at(-1)!.endsWith('/') ? join(target, basename(source)) : target;
    const filter = (each: string) => from !== undefined || !/\/(?:node_modules|dist)(?:\/|$)/.test(each);
    cpSync(path, into, { recursive: true, filter, verbatimSymlinks: true });
  }
}

/** As compose.scale.yaml says, with an empty volume. */
async function serveOfFleet(image: Image): Promise<void> {
  if (!hasPostgresPrograms || !hasRedis) return console.log('PostgreSQL or Redis is not installed: no fleet was tried');
  for (const volume of image.volumes)
    for (const name of readdirSync(join(image.room.root, volume)))
      rmSync(join(image.room.root, volume, name), { recursive: true });
  const stores = await startStores();
  try {
    await serve(image, services.gateway.command, stores.variables);
  } finally {
    await stores.close();
  }
}

async function serve(
  { room, where, volumes, entry, health }: Image,
  command: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  assert.ok(where.user !== undefined && where.user !== 'root', 'the image runs as root');
  const port = await freePort();
  const inside: Where = { ...where, environment: { ...where.environment, ...environment, PORT: `${port}` } };
  const startedAt = performance.now();
  const gateway = room.serve([...entry, ...command], inside, volumes);
  const healthy = async () => {
    const check = room.serve(health, inside, volumes);
    return ((await once(check, 'exit')) as [number | null])[0] === 0;
  };
  assert.equal(await healthy(), false, 'the health check succeeds before anything listens');
  const origin = `http://127.0.0.1:${port}`;
  while ((await fetch(`${origin}/readyz`).catch(() => undefined))?.status !== 200) {
    assert.equal(gateway.exitCode, null, 'the gateway ended at its start');
    assert.ok(performance.now() - startedAt < readyWithinMs, 'it is not ready');
    await pause(100);
  }
  console.log(`${command.join(' ')}: ready after ${Math.round(performance.now() - startedAt)} ms`);
  assert.equal(await healthy(), true, 'the health check fails');
  assert.equal((await fetch(`${origin}/v1/models`)).status, 200);
  assert.equal((await fetch(`${origin}/console/`)).status, 200, 'the console has no pages');
  gateway.kill('SIGTERM');
  assert.equal(((await once(gateway, 'exit')) as [number | null])[0], 0);
  assert.equal(await healthy(), false);
}

function tellSize({ room, where }: Image): void {
  const size = globSync('**', { cwd: join(room.root, where.directory) }).reduce(
    (sum, name) => sum + (statSync(join(room.root, where.directory, name), { throwIfNoEntry: false })?.size ?? 0),
    0,
  );
  console.log(`every step of the Dockerfile was done; ${Math.round(size / 1e6)} MB under ${where.directory}`);
}

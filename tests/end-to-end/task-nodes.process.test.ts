/** Gateways that are killed while tasks are in every state: each task ends once, is paid or given back once, and is made once. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { databaseUrl, ownSchema } from '../helpers/database.ts';
import { isWhole } from '../helpers/histories.ts';
import { endsIn, type Node, type Nodes, openNodes, violationsIn } from './task-node.ts';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const mp4 = Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from('ftypisom'), Buffer.alloc(64)]);
const kills = Number(process.env['KILLS'] ?? 4);
const tasksPerRound = 8;
const schema = ownSchema('tasks');

// ---------------------------------------------------------------------------------------------------------------- vendor

/** Creations by prompt; the last word of a prompt is what becomes of it. */
const accepted = new Map<string, number>();
const vendor = createServer(async (incoming, outgoing) => {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const url = incoming.url ?? '';
  await pause(Math.random() * 300);
  if (url.startsWith('/file')) return void outgoing.writeHead(200, { 'content-type': 'video/mp4' }).end(mp4);
  if (incoming.method === 'GET') return looked(url, incoming.headers.host!, outgoing);
  const { prompt, stream } = JSON.parse(Buffer.concat(chunks).toString()) as { prompt: string; stream?: boolean };
  accepted.set(prompt, (accepted.get(prompt) ?? 0) + 1);
  if (prompt.endsWith('reset')) return void outgoing.destroy();
  if (url.endsWith('/videos/generations')) return respond(outgoing, { request_id: prompt.replaceAll(' ', '-') });
  if (stream === true) return streamed(outgoing);
  return respond(outgoing, { created: 1, data: [{ b64_json: png }] });
});

async function streamed(outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const kind of ['partial_image', 'completed']) {
    const event = { type: `image_generation.${kind}`, b64_json: png };
    outgoing.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    await pause(Math.random() * 300);
  }
  outgoing.end();
}

function looked(url: string, host: string, outgoing: ServerResponse): void {
  if (Math.random() < 0.5) outgoing.writeHead(202).end();
  else respond(outgoing, { status: 'done', video: { url: `http://${host}/file${url}`, duration: 2 } });
}

function respond(outgoing: ServerResponse, body: object): void {
  outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

// ----------------------------------------------------------------------------------------------------------------- nodes

const yamlOf = (vendorOrigin: string) => `
providers: { maker: { keys: vendor-key-1, speaks: { openai-images: "${vendorOrigin}/v1", xai-videos: "${vendorOrigin}/v1" } } }
models:
  paint: { owned_by: tests, kind: image, targets: [maker/p], price: { image: 0.01 } }
  film: { owned_by: tests, kind: video, targets: [maker/f], price: { second: 0.05 } }
task-store: { lease: 1s, reconcile: 1s, poll: { first: 100ms, longest: 300ms }, retry: { first: 100ms, longest: 300ms } }
`;

let opened: Nodes | undefined;
after(async () => {
  await opened?.close();
  vendor.closeAllConnections();
  vendor.close();
});

// Whatever the store, a server shows it with two nodes, in half of the time.
const isHere = databaseUrl !== undefined || isWhole;
const title = 'however nodes are killed, each task ends once, is paid or released once, and is executed at most once';
test(title, { skip: !isHere }, async () => {
  await once(vendor.listen(0, '127.0.0.1'), 'listening');
  const vendorOrigin = `http://127.0.0.1:${(vendor.address() as AddressInfo).port}`;
  opened = await openNodes(schema, yamlOf(vendorOrigin));
  const { nodes, key } = opened;
  await Promise.all(nodes.map((node) => node.start()));
  const known = new Set<string>();
  const submit = async (node: Node, prompt: string) => {
    const film = prompt.endsWith('film');
    const streamed = prompt.endsWith('stream') ? { stream: true, partial_images: 1 } : {};
    const body = film
      ? { model: 'film', content: [{ type: 'text', text: prompt }], duration: 5 }
      : { model: 'paint', prompt, ...streamed };
    const answer = await fetch(node.origin + (film ? '/v1/contents/generations/tasks' : '/v1/images/generations'), {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    assert.equal(answer.status, 200);
    const streamId = answer.headers.get('x-gateway-task');
    if (streamId !== null) {
      known.add(streamId);
      return void (await answer.text());
    }
    const json = (await answer.json()) as { id?: string; data?: { id: string } };
    known.add((json.id ?? json.data?.id)!);
  };
  let orders = 0;
  for (let round = 0; round < kills; round += 1) {
    const node = nodes[round % nodes.length]!;
    const kinds = ['film', 'paint', 'stream', 'film', 'paint', 'reset', 'stream'];
    // Those that are on their way to the node that dies may be taken or not.
    const all = Promise.allSettled(
      Array.from({ length: tasksPerRound }, () => {
        orders += 1;
        return submit(nodes[orders % nodes.length]!, `order ${orders} ${kinds[orders % kinds.length]}`);
      }),
    );
    await pause(150 + Math.random() * 500);
    await node.kill();
    await all;
    await node.start();
  }
  // How many of those end well is chance; with no one killed, all that the vendor makes do.
  const calm = ['film', 'paint', 'stream'].map((kind) => `calm ${kind}`);
  for (const prompt of calm) await submit(nodes[0]!, prompt);
  // The nodes work it off.
  for (let tries = 0; tries < 1_000; tries += 1) {
    const listed = await fetch(`${nodes[0]!.origin}/v1/tasks?limit=100`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const { data } = (await listed.json()) as { data: { status?: string; data?: { status: string } }[] };
    const open = data.filter((task) => /queued|running|submitted|processing/.test((task.status ?? task.data?.status)!));
    if (open.length === 0) break;
    await pause(300);
  }
  await Promise.all(nodes.map((node) => node.kill()));
  await nodes[0]!.runAsCommand(async (gateway) => {
    const ends = await endsIn(gateway);
    assert.ok(ends.length >= known.size);
    for (const id of known)
      assert.ok(
        ends.some((end) => end.id === id),
        `${id} was lost`,
      );
    for (const { prompt, state, kinds, cost } of ends) {
      assert.deepEqual(kinds, [state === 'completed' ? 'charged' : 'free'], `${prompt} is ${state}`);
      const due = state !== 'completed' ? '0' : prompt.endsWith('film') ? '100000000' : '10000000';
      assert.equal(cost, due, prompt);
      if (state === 'completed') assert.equal(accepted.get(prompt), 1, prompt);
    }
    for (const [prompt, times] of accepted) assert.equal(times, 1, `${prompt} was made ${times} times`);
    for (const calmed of calm) assert.equal(ends.find(({ prompt }) => prompt === calmed)?.state, 'completed', calmed);
    assert.deepEqual(await violationsIn(gateway), []);
  });
});

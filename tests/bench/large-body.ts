/** The longest turn of the gateway's event loop while a request of 10 MB passes: so long do all others wait. */
import { answerOf, measuredCore, type Started, start, stop } from './processes.ts';
import { modelOf } from './words.ts';

const imageBytes = 10 * 2 ** 20;
const rounds = 5;

const image = `data:image/png;base64,${'A'.repeat(imageBytes)}`;
const content = [
  { type: 'text', text: 'What is this?' },
  { type: 'image_url', image_url: { url: image } },
];

export async function largeBody(upstream: Started): Promise<void> {
  const gateway = await start('gateway.ts', [String(upstream.port), 'full', 'turns'], measuredCore);
  const figures: string[] = [];
  for (const [way, model] of [
    ['relayed', modelOf('chat')],
    ['translated', modelOf('messages')],
  ] as const) {
    const body = JSON.stringify({ model, messages: [{ role: 'user', content }] });
    const longest: number[] = [];
    for (let round = 0; round <= rounds; round++) {
      await answerOf(gateway);
      await send(gateway, body);
      if (round > 0) longest.push(await answerOf(gateway));
    }
    figures.push(`${way} ${Math.min(...longest).toFixed(1)} to ${Math.max(...longest).toFixed(1)}`);
  }
  stop(gateway);
  console.log(`\nA body of 10 MB: longest turn of the event loop, ms of processor time: ${figures.join('; ')}`);
}

async function send({ port, key }: Started, body: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, { method: 'POST', headers, body });
  await answer.arrayBuffer();
  if (answer.status !== 200) throw new Error(`a body of 10 MB was answered with ${answer.status}`);
}

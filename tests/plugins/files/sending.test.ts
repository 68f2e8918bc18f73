/** Places of files that are sent: in all, of one account, of one network; and clients that take them too slowly. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Exchange } from '../../../core/contract/contract.ts';
import { Sending } from '../../../plugins/files/sending.ts';
import { fakeHost } from '../../helpers/fakes.ts';

function client(remoteAddress: string) {
  const ends: (() => void)[] = [];
  const exchange = {
    request: { remoteAddress },
    defer: (end: () => void) => void ends.push(end),
  } as unknown as Exchange;
  return { exchange, leave: () => void ends.map((end) => end()) };
}

test('an account, and a network, get their share of the places, and others the rest', () => {
  const sending = new Sending({ answers: 8, slowest: 4_096 }, fakeHost().clock);
  const admit = (address: string, owner = address) => {
    const one = client(address);
    sending.admit(one.exchange, owner);
    return one;
  };
  const first = admit('192.0.2.1', 'a');
  admit('192.0.2.2', 'a');
  assert.throws(() => admit('192.0.2.3', 'a'), { kind: 'rate_limited', code: 'files' });
  admit('2001:db8:1:2::1');
  admit('2001:db8:1:2::2');
  assert.throws(() => admit('2001:db8:1:2:3::1'), { kind: 'rate_limited' });
  for (const address of ['198.51.100.1', '198.51.100.2', '198.51.100.3', '198.51.100.4']) admit(address);
  assert.throws(() => admit('198.51.100.5'), { kind: 'overloaded' });
  first.leave();
  admit('192.0.2.3', 'a');
});

test('a client slower than the bound is cut after half a minute, and a faster one is served to the end', async () => {
  const host = fakeHost();
  const sending = new Sending({ answers: 8, slowest: 4_096 }, host.clock);
  async function* pieces() {
    for (let piece = 0; piece < 10; piece++) yield new Uint8Array(65_536);
  }
  const read = async (msEach: number) => {
    let bytes = 0;
    for await (const piece of sending.paced(pieces())) {
      bytes += piece.length;
      host.advance(msEach);
    }
    return bytes;
  };
  assert.equal(await read(15_000), 655_360);
  await assert.rejects(read(17_000), { kind: 'request_timeout' });
});

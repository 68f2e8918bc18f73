/** The wire protocol's messages: cut anywhere, and refused when they are none. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  AnswerScanner,
  closedName,
  closeStatement,
  fatal,
  type Message,
  MessageReader,
  maxMessageBytes,
  parse,
  parsedName,
  query,
  statementText,
  sync,
  welcome,
} from '../../../plugins/storage/embedded/wire.ts';
import { fc } from '../../helpers/properties.ts';

export const startup = opening(196_608, 'user\0postgres\0\0');

function opening(code: number, text = ''): Buffer {
  const bytes = Buffer.alloc(8 + text.length);
  bytes.writeUInt32BE(bytes.length, 0);
  bytes.writeUInt32BE(code, 4);
  bytes.write(text, 8);
  return bytes;
}

function readAll(bytes: Buffer, cuts: readonly number[]): Message[] {
  const reader = new MessageReader();
  const edges = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return edges.slice(1).flatMap((edge, index) => reader.push(bytes.subarray(edges[index], edge)));
}

const shapeOf = (messages: readonly Message[]) => messages.map(({ kind, bytes }) => [kind, bytes.toString('hex')]);

test('messages are the same in any pieces', () => {
  const text = fc.string().map((value) => value.replaceAll('\0', ''));
  const message = fc.oneof(
    text.map(query),
    text.map((value) => parse('name', value)),
    fc.constant(sync),
  );
  fc.assert(
    fc.property(fc.array(message, { maxLength: 8 }), fc.array(fc.nat()), (messages, cuts) => {
      const bytes = Buffer.concat([opening(80_877_103), startup, ...messages]);
      const kinds = messages.map((one) => [String.fromCharCode(one[0]!), one.toString('hex')]);
      const expected = [
        ['encryption', opening(80_877_103).toString('hex')],
        ['startup', startup.toString('hex')],
        ...kinds,
      ];
      assert.deepEqual(shapeOf(readAll(bytes, cuts)), expected);
    }),
  );
});

test('a cancel request is distinguished from a startup message', () => {
  assert.deepEqual(
    readAll(opening(80_877_102, '12345678'), []).map(({ kind }) => kind),
    ['cancel'],
  );
});

test('a first packet that is too long, too short or of another protocol is refused', () => {
  for (const bytes of [
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    opening(131_072),
    Buffer.from('0000000400030000', 'hex'),
  ]) {
    assert.throws(() => readAll(bytes, []), { name: 'ProtocolError' });
  }
});

test('a message with an impossible length is refused before its body arrives', () => {
  for (const length of [0, 3, maxMessageBytes, 0xffff_ffff]) {
    const header = Buffer.from('Q....');
    header.writeUInt32BE(length, 1);
    assert.throws(() => readAll(Buffer.concat([startup, header]), []), { name: 'ProtocolError' }, String(length));
  }
});

test('names and text are read from the messages that carry them', () => {
  const [, parsed, closed, requested] = readAll(
    Buffer.concat([startup, parse('a', 'select 1'), closeStatement('b'), query('ä')]),
    [],
  );
  assert.equal(parsedName(parsed!), 'a');
  assert.equal(statementText(parsed!), 'select 1');
  assert.equal(closedName(closed!), 'b');
  assert.equal(statementText(requested!), 'ä');
});

test('text without an end is refused', () => {
  const broken = Buffer.from(query('select 1').toString('latin1').replace(/\0$/, 'x'), 'latin1');
  const [, message] = readAll(Buffer.concat([startup, broken]), []);
  assert.throws(() => statementText(message!), { name: 'ProtocolError' });
});

test('the state after an answer and its notifications are known in any pieces', () => {
  // Process 7, channel "c", payload "p".
  const notification = Buffer.from('410000000c0000000763007000', 'hex');
  const answer = Buffer.concat([
    welcome({ server_version: '18' }, 7),
    notification,
    notification,
    fatal('25P03', 'ended'),
    Buffer.from('4700000007000000', 'hex'),
    Buffer.from('5a0000000554', 'hex'),
  ]);
  fc.assert(
    fc.property(fc.array(fc.nat(answer.length)), (cuts) => {
      const scanner = new AnswerScanner();
      const edges = [0, ...cuts.sort((a, b) => a - b), answer.length];
      for (const [index, edge] of edges.slice(1).entries()) scanner.push(answer.subarray(edges[index], edge));
      assert.deepEqual([scanner.status, scanner.errors, scanner.copyIn], ['T', 1, true]);
      assert.deepEqual(scanner.notifications, [notification, notification]);
    }),
  );
});

test('an answer without ReadyForQuery leaves the state unknown', () => {
  const scanner = new AnswerScanner();
  scanner.push(fatal('XX000', 'gone'));
  assert.equal(scanner.status, undefined);
});

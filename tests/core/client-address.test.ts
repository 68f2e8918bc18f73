/** Whose word is taken for where a request comes from. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientAddress, isAddressRange, trustedProxies } from '../../core/http/client-address.ts';

const trusted = trustedProxies(['10.0.0.0/8', '192.0.2.7', 'fd00::/8']);

test('without trusted proxies the forwarding header is ignored', () => {
  assert.equal(clientAddress('10.0.0.1', '203.0.113.9', undefined), '10.0.0.1');
});

test('the forwarding header of an untrusted peer is ignored', () => {
  assert.equal(clientAddress('203.0.113.5', '198.51.100.1', trusted), '203.0.113.5');
});

test('the forwarding header of a trusted proxy names the client', () => {
  assert.equal(clientAddress('10.1.2.3', '203.0.113.9', trusted), '203.0.113.9');
  assert.equal(clientAddress('::ffff:10.1.2.3', '2001:db8::1', trusted), '2001:db8::1');
  assert.equal(clientAddress('fd00::1', '[2001:db8::1]:443', trusted), '2001:db8::1');
  assert.equal(clientAddress('10.1.2.3', '203.0.113.9:51111', trusted), '203.0.113.9');
});

test('entries before the first untrusted hop are ignored', () => {
  assert.equal(clientAddress('10.1.2.3', '127.0.0.1, 203.0.113.9, 192.0.2.7', trusted), '203.0.113.9');
});

test('a chain that has only trusted proxies gives the outermost one', () => {
  assert.equal(clientAddress('10.1.2.3', '10.9.9.9, 192.0.2.7', trusted), '10.9.9.9');
});

test('a hop that is no address ends the chain at the last known address', () => {
  assert.equal(clientAddress('10.1.2.3', '203.0.113.9, unknown, 192.0.2.7', trusted), '192.0.2.7');
  assert.equal(clientAddress('10.1.2.3', '', trusted), '10.1.2.3');
});

test('only a bounded part of a long chain is read', () => {
  const long = `203.0.113.9, ${Array.from({ length: 10_000 }, () => '10.0.0.9').join(', ')}`;
  assert.equal(clientAddress('10.1.2.3', long, trusted), '10.0.0.9');
});

test('invalid ranges of trusted proxies are refused', () => {
  for (const good of ['10.0.0.0/8', '127.0.0.1', '::1', 'fd00::/8', '0.0.0.0/0']) assert.ok(isAddressRange(good), good);
  for (const bad of ['10.0.0.0/33', 'fd00::/129', 'localhost', '10.0.0', '10.0.0.0/8/8', '10.0.0.0/', ''])
    assert.ok(!isAddressRange(bad), bad);
});

/** A connection through an HTTP proxy: what comes with the proxy's answer belongs to the upstream, and a refusal names its status alone. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { connectorFor } from '../../core/tools/network.ts';

async function connectThrough(
  answer: string,
): Promise<{ error: Error | null; socket: Socket | null; requested: string }> {
  let requested = '';
  const proxy = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (data) => {
      requested = data.toString();
      socket.end(answer);
    });
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  const { port } = proxy.address() as AddressInfo;
  const network = { proxy: { reveal: () => `http://us%20er:pass@127.0.0.1:${port}` } };
  const connect = connectorFor(10_000, network as never);
  const options = { hostname: 'vendor.example', port: '', protocol: 'http:' };
  const [error, socket] = await new Promise<[Error | null, Socket | null]>((resolve) =>
    connect(options as never, (failure, opened) => resolve([failure, opened])),
  );
  proxy.close();
  return { error, socket, requested };
}

test('upstream bytes in the packet of the answer to CONNECT are read first', async () => {
  const { socket, requested } = await connectThrough('HTTP/1.1 200 Connected\r\n\r\nHTTP/1.1 204 Soon\r\n\r\n');
  assert.match(requested, /^CONNECT vendor\.example:80 HTTP\/1\.1\r\n/);
  assert.match(requested, /proxy-authorization: Basic dXMgZXI6cGFzcw==/i);
  let read = '';
  for await (const chunk of socket!) read += String(chunk);
  assert.equal(read, 'HTTP/1.1 204 Soon\r\n\r\n');
});

test("a proxy's refusal is reported by its status, without its address and credentials", async () => {
  const { error } = await connectThrough('HTTP/1.1 407 Who\r\ncontent-length: 0\r\n\r\n');
  assert.equal(error?.message, 'the proxy refused the connection with the status 407');
});

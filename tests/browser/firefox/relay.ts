#!/usr/bin/env node
/**
 * Stands in for the Firefox executable: starts Firefox and relays its WebDriver BiDi socket. Playwright overrides media features
 * in every context, by a command that Firefox ESR does not know; the relay answers that one itself. The scheme of the pages is
 * a preference of the browser (`launchFirefox`), which passes the executable as `FIREFOX`.
 */
import { spawn } from 'node:child_process';
import type { AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';
import { WebSocket, WebSocketServer } from 'ws';

const unknownCommand = 'emulation.setMediaFeaturesOverride';
const waitingLimit = 1_000;

const firefox = spawn(process.env['FIREFOX']!, process.argv.slice(2), { stdio: ['ignore', 'inherit', 'pipe'] });
firefox.once('exit', (code) => process.exit(code ?? 1));
process.once('SIGTERM', () => firefox.kill());

createInterface({ input: firefox.stderr }).on('line', (line) => {
  const address = /WebDriver BiDi listening on (ws:\S+)$/.exec(line)?.[1];
  if (address === undefined) process.stderr.write(`${line}\n`);
  else relayTo(address);
});

function relayTo(address: string): void {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 });
  server.on('listening', () => {
    const { port } = server.address() as AddressInfo;
    process.stderr.write(`WebDriver BiDi listening on ws://127.0.0.1:${port}\n`);
  });
  server.on('connection', (client, { url = '' }) => relay(client, new WebSocket(address + url)));
}

function relay(client: WebSocket, browser: WebSocket): void {
  const waiting: string[] = [];
  client.on('message', (data) => {
    const text = String(data);
    const { id, method } = JSON.parse(text) as { readonly id: number; readonly method: string };
    if (method === unknownCommand) client.send(JSON.stringify({ type: 'success', id, result: {} }));
    else if (browser.readyState === WebSocket.OPEN) browser.send(text);
    else if (waiting.push(text) > waitingLimit) client.close();
  });
  browser.on('open', () => {
    for (const text of waiting.splice(0)) browser.send(text);
  });
  browser.on('message', (data) => client.send(String(data)));
  for (const [socket, other] of [
    [client, browser],
    [browser, client],
  ] as const) {
    socket.on('close', () => other.close());
    socket.on('error', () => other.terminate());
  }
}

/** Tool calls of one account through two nodes on one PostgreSQL: a session of either is one of both, and money is spent once. */
import assert from 'node:assert/strict';
import { accounts } from '../../plugins/common/domain/accounts.ts';
import { ledger } from '../../plugins/common/domain/ledger.ts';
import { parseUsd } from '../../plugins/common/domain/money.ts';
import { databaseUrl, ownSchema, testOnServer } from '../helpers/database.ts';
import { startGateway } from '../helpers/gateway.ts';
import { until } from '../helpers/until.ts';
import { ToolServer } from '../kill/tools.ts';

testOnServer(
  'two nodes make exactly 50 of 300 tool calls at once on money for 50, in a session that one of them has opened',
  async () => {
    const marks = new ToolServer();
    const address = await marks.start();
    const yaml = `
gateway: tools
listen: 127.0.0.1:0
schema: ${ownSchema('tool_nodes')}
storage: { database: "${databaseUrl}" }
plugins: [storage, telemetry, request-log, auth, plans, rate-limit, billing, mcp]
plans: { default: free, offers: { free: { price: 0 } } }
mcp: { servers: { marks: { url: "${address}", allow_private: true, price: { call: 0.1 } } }, per_account: 1000 }
`;
    const first = await startGateway(yaml);
    const second = await startGateway(yaml);
    try {
      const of = first.gateway;
      const { id } = await of.find(accounts)!.create('acme', 'free');
      await of.find(ledger)!.credit(id, parseUsd('5'), { kind: 'manual', reason: 'test', reference: 'nodes' });
      const { key } = await of.find(accounts)!.createKey(id, { name: 'tools' });
      let session: string | undefined;
      const post = (node: number, method: string, params: object) =>
        fetch(`${[first, second][node % 2]!.origin}/mcp`, {
          method: 'POST',
          headers: {
            ...{ authorization: `Bearer ${key}`, 'content-type': 'application/json' },
            ...{ accept: 'application/json, text/event-stream', 'mcp-protocol-version': '2025-11-25' },
            ...(session === undefined ? {} : { 'mcp-session-id': session }),
          },
          body: JSON.stringify({ jsonrpc: '2.0', id: node, method, params }),
        });
      const clientInfo = { name: 'test', version: '1' };
      const opened = await post(0, 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
      session = opened.headers.get('mcp-session-id') ?? undefined;
      assert.ok(session !== undefined);
      assert.match(await (await post(1, 'tools/list', {})).text(), /marks__mark/);
      const ends = new Map<string, number>();
      const call = async (number: number): Promise<void> => {
        const params = { name: 'marks__mark', arguments: { mark: String(number) } };
        const answer = await post(number, 'tools/call', params);
        const text = await answer.text();
        // Money that the other node holds comes a moment later.
        if (answer.status === 429) return call(number);
        const end = text.includes(`marked ${number}`) ? 'made' : String(answer.status);
        ends.set(end, (ends.get(end) ?? 0) + 1);
      };
      await Promise.all(Array.from({ length: 300 }, (_, number) => call(number)));
      assert.deepEqual([...ends].toSorted(), [
        ['402', 250],
        ['made', 50],
      ]);
      assert.equal(new Set(marks.ran).size, 50);
      assert.equal(marks.ran.length, 50);
      await until('the charges of both nodes', async () => (await of.find(ledger)!.balance(id)) === 0n);
      const { json } = await of.commands.find(({ name }) => name === 'audit')!.run({});
      assert.deepEqual((json as { violations: unknown[] }).violations, []);
    } finally {
      await Promise.all([first.stop(), second.stop()]);
      marks.close();
    }
  },
);

/** A tool server as a program: started by tests of programs. Its arguments: a file with what happens, and the era that it speaks. */
import { appendFileSync } from 'node:fs';
import { Server } from '@modelcontextprotocol/server';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';

appendFileSync(process.argv[2]!, `${process.pid}\n`);
process.stderr.write('the program runs\n');
const names = ['variables', 'crash', 'big', 'slow', 'fails'];

function made(): Server {
  const server = new Server({ name: 'program', version: '1' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', async () => ({
    tools: names.map((name) => ({ name, inputSchema: { type: 'object' as const } })),
  }));
  server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
    const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });
    if (params.name === 'crash') process.exit(3);
    if (params.name === 'big') return text('x'.repeat(3_000_000));
    if (params.name === 'fails') return { ...text('no'), isError: true };
    if (params.name === 'slow') {
      appendFileSync(process.argv[2]!, 'slow\n');
      await new Promise<void>((resolve) => mcpReq.signal.addEventListener('abort', () => resolve()));
      appendFileSync(process.argv[2]!, 'cancelled\n');
    }
    return text(JSON.stringify(process.env));
  });
  return server;
}

if (process.argv[3] === 'legacy') await made().connect(new StdioServerTransport());
else serveStdio(made);

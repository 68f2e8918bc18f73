/** The console's snippets, run as they are shown: JavaScript by the official SDKs, curl where there is one. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type Demo, startDemo } from './demo.ts';
import { calls, nameOf, writeSnippets } from './snippet-calls.ts';

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), 'snippets-'));
let demo: Demo;
before(async () => {
  demo = await startDemo();
  symlinkSync(fileURLToPath(new URL('../../node_modules', import.meta.url)), join(folder, 'node_modules'));
  const access = { base: demo.origin, key: demo.keys.good };
  await writeSnippets(folder, 'javascript', access);
  await writeSnippets(folder, 'curl', access);
});
after(async () => {
  await demo.stop();
  rmSync(folder, { recursive: true });
});

/** What the snippet in this folder prints. */
async function outputOf(name: string, file = 'snippet.mjs', program = process.execPath): Promise<string> {
  const { stdout } = await run(program, [file], { cwd: join(folder, name), timeout: 60_000 });
  return stdout;
}

for (const [index, { call, says, makes }] of calls.entries())
  test(`the SDK makes a call of ${nameOf(index)}`, async () => {
    const printed = await outputOf(nameOf(index));
    if (says !== undefined) assert.match(printed, says);
    if (makes !== undefined) assert.ok(statSync(join(folder, nameOf(index), makes)).size > 100, call.name);
  });

/** Code of a page for clients, as the gateway serves it, with a key in its place. */
async function pageCode(id: string, language: string): Promise<string> {
  const page = await (await fetch(`${demo.origin}/docs/clients/${id}.md`)).text();
  const [, code] = new RegExp(`^\`\`\`${language}[^\\n]*\\n([\\s\\S]*?)^\`\`\``, 'm').exec(page)!;
  return code!.replaceAll('YOUR_KEY', demo.keys.good);
}

for (const id of ['openai', 'anthropic', 'google', 'ai-sdk'])
  test(`the code of the page about ${id} runs unchanged`, async () => {
    await writeFile(join(folder, id, 'snippet.mjs'), await pageCode(id, 'js'));
    assert.match(await outputOf(id), /Hello/);
  });

test("the AI SDK's template for images makes one with a key of the specification", async () => {
  await outputOf('ai-sdk-images');
  assert.ok(statSync(join(folder, 'ai-sdk-images', 'made.png')).size > 100);
});

const hasCurl = () => {
  try {
    execFileSync('curl', ['--version']);
    return true;
  } catch {
    return false;
  }
};

test('curl sends the same calls, with the bytes of files', { skip: !hasCurl() && 'there is no curl' }, async () => {
  for (const [index, { call, says }] of calls.entries()) {
    const printed = await outputOf(nameOf(index), 'snippet.sh', '/bin/sh');
    if (call.name === 'speech') assert.ok(readdirSync(join(folder, nameOf(index))).includes('speech.wav'));
    else if (call.name === 'image' || call.name === 'video') assert.match(printed, /"id": ?"task_/, nameOf(index));
    else if (call.name === 'embedding') assert.match(printed, /"embedding"/);
    else if (call.name === 'rerank') assert.match(printed, /"relevance_score"/);
    else assert.match(printed.replaceAll(/"\}[\s\S]*?"(delta|content|text)": ?"/g, ''), says!, nameOf(index));
  }
});

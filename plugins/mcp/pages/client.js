/** The clients' page of tools, as browsers load it: no build, no library. Texts are set as text, never as HTML. */

const texts = {
  en: {
    tools: 'Tools',
    tool: 'Tool',
    price: 'USD a call',
    none: 'This gateway has no tools.',
    program: 'Program',
    which: 'Tools',
    all: 'All tools',
    setUp: 'Set up a program',
    hint: 'Put your key in the variable GATEWAY_KEY. A key may have fewer tools than are listed here.',
    copy: 'Copy',
    copied: 'Copied',
    model: 'A model, with the gateway making the calls',
  },
  de: {
    tools: 'Werkzeuge',
    tool: 'Werkzeug',
    price: 'USD je Aufruf',
    none: 'Dieses Gateway hat keine Werkzeuge.',
    program: 'Programm',
    which: 'Werkzeuge',
    all: 'Alle Werkzeuge',
    setUp: 'Ein Programm einrichten',
    hint: 'Legen Sie Ihren Schlüssel in die Variable GATEWAY_KEY. Ein Schlüssel kann weniger Werkzeuge haben, als hier stehen.',
    copy: 'Kopieren',
    copied: 'Kopiert',
    model: 'Ein Modell, für das das Gateway die Aufrufe macht',
  },
  ja: {
    tools: 'ツール',
    tool: 'ツール',
    price: '1 回の料金 (USD)',
    none: 'このゲートウェイにツールはありません。',
    program: 'プログラム',
    which: 'ツール',
    all: 'すべてのツール',
    setUp: 'プログラムを設定する',
    hint: 'キーを変数 GATEWAY_KEY に入れてください。キーで使えるツールは、この一覧より少ないことがあります。',
    copy: 'コピー',
    copied: 'コピーしました',
    model: 'モデル (呼び出しはゲートウェイが行います)',
  },
  zh: {
    tools: '工具',
    tool: '工具',
    price: '每次调用 (USD)',
    none: '此网关没有工具。',
    program: '程序',
    which: '工具',
    all: '全部工具',
    setUp: '设置程序',
    hint: '请把密钥放入变量 GATEWAY_KEY。密钥可用的工具可能比此处列出的少。',
    copy: '复制',
    copied: '已复制',
    model: '模型（由网关进行调用）',
  },
};

const json = (value) => JSON.stringify(value, null, 2);
const bearer = (key) => ({ Authorization: `Bearer ${key}` });

/** Settings of programs, by the address of the tools; the first line says where they belong. */
const programs = {
  'Claude Code': (url) =>
    `claude mcp add --transport http gateway ${url} --header "Authorization: Bearer $GATEWAY_KEY"`,
  Codex: (url) => `# ~/.codex/config.toml\n[mcp_servers.gateway]\nurl = "${url}"\nbearer_token_env_var = "GATEWAY_KEY"`,
  'Gemini CLI': (url) =>
    `# ~/.gemini/settings.json\n${json({ mcpServers: { gateway: { httpUrl: url, headers: bearer('$GATEWAY_KEY') } } })}`,
  Cursor: (url) =>
    `# ~/.cursor/mcp.json\n${json({ mcpServers: { gateway: { url, headers: bearer(['$', '{env:GATEWAY_KEY}'].join('')) } } })}`,
};

const modelCall = (origin, name) =>
  `curl ${origin}/v1/responses -H "Authorization: Bearer $GATEWAY_KEY" -H "Content-Type: application/json" -d '${json({
    model: 'MODEL',
    input: 'Hello',
    tools: [{ type: 'mcp', server_label: 'tools', server_url: `gateway://${name}`, require_approval: 'never' }],
  })}'`;

/** @param {HTMLElement} place @param {import('model-gateway/domain').AdminPageConsole} console */
export async function mount(place, console) {
  const text = texts[console.language] ?? texts.en;
  const { tools, bundles } = await console.request('GET', '/pages/tools');
  if (tools.length === 0) {
    place.append(make('p', text.none));
    return;
  }
  place.append(make('h2', text.setUp), make('p', text.hint), ...setUp(tools, bundles, text));
  const rows = tools.map(({ name, description, price }) => [[make('strong', name), make('br'), description], [price]]);
  place.append(make('h2', text.tools), table([text.tool, text.price], rows));
}

function setUp(tools, bundles, text) {
  const program = make(
    'select',
    ...Object.keys(programs).map((name) => make('option', name)),
    make('option', text.model),
  );
  const which = make('select', ...[text.all, ...bundles].map((name) => make('option', name)));
  const code = make('code');
  const copy = make('button', text.copy);
  copy.type = 'button';
  const written = make('pre', code);
  written.tabIndex = 0;
  Object.assign(written.style, { whiteSpace: 'pre-wrap', overflowWrap: 'anywhere' });
  const draw = () => {
    const bundle = which.selectedIndex === 0 ? undefined : which.value;
    const url = `${location.origin}/mcp${bundle === undefined ? '' : `/${bundle}`}`;
    const settings = programs[program.value];
    const first = tools[0].name.split('__')[0];
    code.textContent = settings === undefined ? modelCall(location.origin, bundle ?? first) : settings(url);
    copy.textContent = text.copy;
  };
  for (const choice of [program, which]) choice.addEventListener('change', draw);
  copy.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      copy.textContent = text.copied;
    } catch {
      getSelection()?.selectAllChildren(code);
    }
  });
  draw();
  const form = make('form', make('label', text.program, program), make('label', text.which, which), copy);
  form.addEventListener('submit', (event) => event.preventDefault());
  return [form, written];
}

function table(heads, rows) {
  const head = make('tr', ...heads.map((name) => make('th', name)));
  const body = rows.map((cells) => make('tr', ...cells.map((cell) => make('td', ...cell))));
  return make('table', make('thead', head), make('tbody', ...body));
}

function make(name, ...content) {
  const element = document.createElement(name);
  element.append(...content);
  return element;
}

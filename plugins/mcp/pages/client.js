/** The clients' page of tools, as browsers load it: no build, no library. Texts are set as text, never as HTML. */

const texts = {
  en: {
    connections: 'Connections',
    connectHint: 'Servers that ask you to sign in there. Your keys use their tools once you have connected them.',
    server: 'Server',
    state: 'State',
    connected: 'connected',
    unconnected: 'not connected',
    ended: 'connect it again',
    ofAccount: 'for the whole account',
    connect: 'Connect',
    disconnect: 'Disconnect',
    nowConnected: 'The server is connected.',
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
    connections: 'Verbindungen',
    connectHint:
      'Server, bei denen Sie sich selbst anmelden. Ihre Schlüssel nutzen deren Werkzeuge, sobald Sie verbunden sind.',
    server: 'Server',
    state: 'Zustand',
    connected: 'verbunden',
    unconnected: 'nicht verbunden',
    ended: 'bitte neu verbinden',
    ofAccount: 'für das ganze Konto',
    connect: 'Verbinden',
    disconnect: 'Trennen',
    nowConnected: 'Der Server ist verbunden.',
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
    connections: '接続',
    connectHint: 'ご自身でのサインインを求めるサーバーです。接続すると、キーでそのツールを使えます。',
    server: 'サーバー',
    state: '状態',
    connected: '接続済み',
    unconnected: '未接続',
    ended: '再接続が必要です',
    ofAccount: 'アカウント全体',
    connect: '接続する',
    disconnect: '切断する',
    nowConnected: 'サーバーに接続しました。',
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
    connections: '连接',
    connectHint: '需要您自行登录的服务器。连接后，您的密钥即可使用其工具。',
    server: '服务器',
    state: '状态',
    connected: '已连接',
    unconnected: '未连接',
    ended: '请重新连接',
    ofAccount: '用于整个账户',
    connect: '连接',
    disconnect: '断开',
    nowConnected: '服务器已连接。',
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
  const said = make('p');
  said.setAttribute('role', 'status');
  await finish(console, said, text);
  const { connections } = await console.request('GET', '/pages/tools/connections');
  if (said.textContent !== '') place.append(said);
  if (connections.length > 0) place.append(...connected(connections, console, text));
  const { tools, bundles } = await console.request('GET', '/pages/tools');
  if (tools.length === 0) {
    place.append(make('p', text.none));
    return;
  }
  place.append(make('h2', text.setUp), make('p', text.hint), ...setUp(tools, bundles, text));
  const rows = tools.map(({ name, description, price }) => [[make('strong', name), make('br'), description], [price]]);
  place.append(make('h2', text.tools), table([text.tool, text.price], rows));
}

/** The browser comes back from a server with an answer in its address, which is not left there. */
async function finish(console, said, text) {
  const answer = new URLSearchParams(location.search);
  const state = answer.get('state');
  if (state === null) return;
  history.replaceState(history.state, '', location.pathname);
  const given = Object.fromEntries(
    ['code', 'iss'].flatMap((name) => (answer.has(name) ? [[name, answer.get(name)]] : [])),
  );
  try {
    await console.request('POST', '/pages/tools/answers', { state, ...given });
    said.textContent = text.nowConnected;
  } catch (error) {
    said.textContent = error.message;
  }
}

function connected(connections, console, text) {
  const words = { connected: text.connected, none: text.unconnected, ended: text.ended };
  const problem = make('p');
  problem.setAttribute('role', 'alert');
  const act = (label, server, work) => {
    const button = make('button', label);
    button.type = 'button';
    button.setAttribute('aria-label', `${label} ${server}`);
    button.addEventListener('click', async () => {
      button.disabled = true;
      try {
        await work();
      } catch (error) {
        problem.textContent = error.message;
        button.disabled = false;
      }
    });
    return button;
  };
  const rows = connections.map(({ server, per, state }) => {
    const cell = make('span', words[state] + (per === 'account' ? ` (${text.ofAccount})` : ''));
    const connect = act(text.connect, server, async () => {
      const { origin } = location;
      const { location: away } = await console.request('POST', `/pages/tools/connections/${server}`, { origin });
      location.assign(away);
    });
    const disconnect = act(text.disconnect, server, async () => {
      await console.request('DELETE', `/pages/tools/connections/${server}`);
      cell.textContent = words.none;
      disconnect.replaceWith(connect);
    });
    return [[make('strong', server)], [cell], [state === 'connected' ? disconnect : connect]];
  });
  return [
    make('h2', text.connections),
    make('p', text.connectHint),
    table([text.server, text.state, ''], rows),
    problem,
  ];
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

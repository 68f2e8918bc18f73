/** The operators' page of tools, as browsers load it: no build, no library. Texts are set as text, never as HTML. */

const texts = {
  en: {
    servers: 'Servers',
    engine: 'Search engine',
    server: 'Server',
    state: 'State (tools)',
    reached: 'reached',
    away: 'not reached',
    calls: 'Calls',
    failed: 'Failures',
    seen: 'Calls and failures are those that this process has seen; beside failures stands the time of the last one.',
    spent: 'What tools have cost in 30 days',
    tool: 'Tool',
    price: 'USD a call',
    made: 'Calls',
    cost: 'USD',
    none: 'No server of tools is set. Add one to "mcp.servers" in the configuration.',
    unspent: 'No tool was called in the last 30 days.',
  },
  de: {
    servers: 'Server',
    engine: 'Suchmaschine',
    server: 'Server',
    state: 'Zustand (Werkzeuge)',
    reached: 'erreicht',
    away: 'nicht erreicht',
    calls: 'Aufrufe',
    failed: 'Fehler',
    seen: 'Aufrufe und Fehler sind die, die dieser Prozess gesehen hat; bei Fehlern steht die Zeit des letzten.',
    spent: 'Was Werkzeuge in 30 Tagen gekostet haben',
    tool: 'Werkzeug',
    price: 'USD je Aufruf',
    made: 'Aufrufe',
    cost: 'USD',
    none: 'Es ist kein Server mit Werkzeugen eingestellt. Fügen Sie einen unter "mcp.servers" der Konfiguration hinzu.',
    unspent: 'In den letzten 30 Tagen wurde kein Werkzeug aufgerufen.',
  },
  ja: {
    servers: 'サーバー',
    engine: '検索エンジン',
    server: 'サーバー',
    state: '状態 (ツール数)',
    reached: '接続済み',
    away: '接続できません',
    calls: '呼び出し',
    failed: '失敗',
    seen: '呼び出しと失敗はこのプロセスが見たものです。失敗の横は最後の失敗の時刻です。',
    spent: '30 日間のツールの料金',
    tool: 'ツール',
    price: '1 回の料金 (USD)',
    made: '呼び出し',
    cost: 'USD',
    none: 'ツールのサーバーは設定されていません。設定の "mcp.servers" に追加してください。',
    unspent: '過去 30 日間に呼び出されたツールはありません。',
  },
  zh: {
    servers: '服务器',
    engine: '搜索引擎',
    server: '服务器',
    state: '状态 (工具数)',
    reached: '已连接',
    away: '无法连接',
    calls: '调用',
    failed: '失败',
    seen: '调用和失败是此进程所见的；失败旁是最近一次的时间。',
    spent: '30 天内工具的费用',
    tool: '工具',
    price: '每次调用 (USD)',
    made: '调用',
    cost: 'USD',
    none: '没有设置工具服务器。请在配置的 "mcp.servers" 中添加。',
    unspent: '最近 30 天没有调用过工具。',
  },
};

/** @param {HTMLElement} place @param {import('model-gateway/domain').AdminPageConsole} console */
export async function mount(place, console) {
  const text = texts[console.language] ?? texts.en;
  const { servers, search, spent } = await console.request('GET', '/admin/tools');
  const time = new Intl.DateTimeFormat(console.language, { dateStyle: 'short', timeStyle: 'medium' });
  const seen = ({ calls, failed, lastFailure }) => [
    String(calls),
    lastFailure === null ? String(failed) : `${failed} (${time.format(new Date(lastFailure))})`,
  ];
  if (search !== null) {
    const heads = [text.engine, text.calls, text.failed];
    place.append(make('h2', text.engine), table(heads, [[search.name, ...seen(search)]]), make('p', text.seen));
  }
  if (servers.length === 0) {
    place.append(make('p', text.none));
    return;
  }
  const rows = servers.map(({ name, reached, tools, ...health }) => [
    name,
    `${reached ? text.reached : text.away} (${tools.length})`,
    ...seen(health),
  ]);
  const heads = [text.server, text.state, text.calls, text.failed];
  place.append(make('h2', text.servers), table(heads, rows), make('p', text.seen));
  const prices = new Map(servers.flatMap(({ tools }) => tools.map(({ name, price }) => [name, price])));
  const known = new Map(spent.map((one) => [one.tool, one]));
  const names = [...new Set([...prices.keys(), ...known.keys()])];
  const costs = names.map((name) => {
    const { calls = 0, cost = '0.00' } = known.get(name) ?? {};
    return [name, prices.get(name) ?? '–', String(calls), cost];
  });
  place.append(make('h2', text.spent));
  if (spent.length === 0) place.append(make('p', text.unspent));
  place.append(table([text.tool, text.price, text.made, text.cost], costs));
}

function table(heads, rows) {
  const head = make('tr', ...heads.map((name) => make('th', name)));
  const body = rows.map((cells) => make('tr', ...cells.map((cell) => make('td', cell))));
  return make('table', make('thead', head), make('tbody', ...body));
}

function make(name, ...content) {
  const element = document.createElement(name);
  element.append(...content);
  return element;
}

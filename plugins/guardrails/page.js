/** The page of guardrails, as browsers load it: no build, no library. Texts are set as text, never as HTML. */

const texts = {
  en: {
    check: 'Check',
    stage: 'Stage',
    calls: 'Calls',
    hits: 'Findings in calls',
    time: 'Milliseconds a call',
    none: 'No call was checked in the last 7 days.',
    mistaken: 'mistaken',
    findings: 'Findings',
    at: 'Time',
    request: 'Request',
    verdict: 'Verdict',
    mark: 'Mark as mistaken',
    unmark: 'Take back',
    try: 'Try a text',
    policy: 'Policy',
    text: 'Text',
    refused: 'The text is refused.',
    stages: { prompt: 'request', answer: 'answer' },
    verdicts: { passed: 'passed', masked: 'masked', refused: 'refused', logged: 'noted', broken: 'broken' },
  },
  de: {
    check: 'Prüfung',
    stage: 'Stelle',
    calls: 'Aufrufe',
    hits: 'Funde in Aufrufen',
    time: 'Millisekunden je Aufruf',
    none: 'In den letzten 7 Tagen wurde kein Aufruf geprüft.',
    mistaken: 'irrtümlich',
    findings: 'Funde',
    at: 'Zeit',
    request: 'Anfrage',
    verdict: 'Urteil',
    mark: 'Als Irrtum markieren',
    unmark: 'Zurücknehmen',
    try: 'Text prüfen',
    policy: 'Richtlinie',
    text: 'Text',
    refused: 'Der Text wird abgelehnt.',
    stages: { prompt: 'Anfrage', answer: 'Antwort' },
    verdicts: { passed: 'bestanden', masked: 'ersetzt', refused: 'abgelehnt', logged: 'vermerkt', broken: 'gestört' },
  },
  ja: {
    check: 'チェック',
    stage: '段階',
    calls: '呼び出し',
    hits: '検出',
    time: '1 回あたりのミリ秒',
    none: '過去 7 日間にチェックされた呼び出しはありません。',
    mistaken: '誤検出',
    findings: '検出一覧',
    at: '時刻',
    request: 'リクエスト',
    verdict: '判定',
    mark: '誤検出とする',
    unmark: '取り消す',
    try: 'テキストを試す',
    policy: 'ポリシー',
    text: 'テキスト',
    refused: 'このテキストは拒否されます。',
    stages: { prompt: 'リクエスト', answer: '回答' },
    verdicts: { passed: '通過', masked: '置換', refused: '拒否', logged: '記録', broken: '故障' },
  },
  zh: {
    check: '检查',
    stage: '阶段',
    calls: '调用',
    hits: '发现',
    time: '每次调用毫秒数',
    none: '最近 7 天没有调用被检查。',
    mistaken: '误报',
    findings: '发现列表',
    at: '时间',
    request: '请求',
    verdict: '结论',
    mark: '标为误报',
    unmark: '撤销',
    try: '试一段文本',
    policy: '策略',
    text: '文本',
    refused: '该文本会被拒绝。',
    stages: { prompt: '请求', answer: '回答' },
    verdicts: { passed: '通过', masked: '已替换', refused: '已拒绝', logged: '已记录', broken: '故障' },
  },
};

/** @param {HTMLElement} place @param {import('model-gateway/domain').AdminPageConsole} console */
export async function mount(place, console) {
  const text = texts[console.language] ?? texts.en;
  const { checks, policies, findings } = await console.request('GET', '/admin/guardrails');
  place.append(ratesTable(checks, text));
  if (console.role === 'operator' && policies.length > 0)
    place.append(make('h2', text.try), trial(policies, text, console));
  if (findings.length === 0) return;
  // All findings of the same text are marked together.
  const again = () => {
    place.replaceChildren();
    return mount(place, console);
  };
  place.append(make('h2', text.findings), findingsTable(findings, { text, console, again }));
}

function ratesTable(checks, text) {
  if (checks.length === 0) return make('p', text.none);
  const names = [text.check, text.stage, text.calls, ...Object.values(text.verdicts), text.mistaken, text.time];
  const head = make('tr', ...names.map((name) => make('th', name)));
  const rows = checks.map(({ check, stage, calls, verdicts, milliseconds, mistaken }) => {
    const counts = Object.keys(text.verdicts).map((verdict) => share(verdicts[verdict] ?? 0, calls));
    const time = String(Math.round(milliseconds));
    const cells = [check, text.stages[stage] ?? stage, String(calls), ...counts, String(mistaken), time];
    return make('tr', ...cells.map((cell) => make('td', cell)));
  });
  return make('table', make('thead', head), make('tbody', ...rows));
}

const share = (count, calls) => (count === 0 ? '0' : `${count} (${Math.round((100 * count) / calls)} %)`);

function findingsTable(findings, tools) {
  const { text, console } = tools;
  const names = [text.at, text.check, text.stage, text.verdict, text.request, ''];
  const time = new Intl.DateTimeFormat(console.language, { dateStyle: 'short', timeStyle: 'medium' });
  const rows = findings.map((finding) => {
    const { check, stage, verdict, request, at } = finding;
    const open = make('a', request);
    open.href = `/admin/requests/${encodeURIComponent(request)}`;
    open.addEventListener('click', (event) => {
      event.preventDefault();
      console.open(`/admin/requests/${encodeURIComponent(request)}`);
    });
    const cells = [
      time.format(at),
      check,
      text.stages[stage] ?? stage,
      text.verdicts[verdict] ?? verdict,
      request.startsWith('session-') ? '' : open,
      console.role === 'operator' ? marking(finding, tools) : finding.mark === '' ? '' : text.mistaken,
    ];
    return make('tr', ...cells.map((cell) => make('td', cell)));
  });
  const head = make('tr', ...names.map((name) => make('th', name)));
  return make('table', make('thead', head), make('tbody', ...rows));
}

/** A button by which a finding is marked, and unmarked. */
function marking({ account, request, check, stage, mark }, { text, console, again }) {
  const isMistaken = mark !== '';
  const button = make('button', isMistaken ? text.unmark : text.mark);
  button.type = 'button';
  button.addEventListener('click', async () => {
    button.disabled = true;
    try {
      const body = { account, request, check, stage, mistaken: !isMistaken };
      await console.request('POST', '/admin/guardrails/marks', body);
      await again();
    } catch (error) {
      button.textContent = error.message;
    }
  });
  return button;
}

function trial(policies, text, console) {
  const policy = make('select', ...policies.map((name) => make('option', name)));
  const written = make('textarea');
  written.required = true;
  written.rows = 5;
  const result = make('pre');
  const fault = make('p');
  fault.setAttribute('role', 'alert');
  const form = make(
    'form',
    make('label', text.policy, policy),
    make('label', text.text, written),
    make('button', text.try),
    fault,
    result,
  );
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    fault.textContent = '';
    try {
      const body = { policy: policy.value, text: written.value };
      const tried = await console.request('POST', '/admin/guardrails/try', body);
      const lines = tried.checks.map(
        ({ check, verdict, findings }) =>
          `${check}: ${text.verdicts[verdict] ?? verdict}${findings > 0 ? ` (${findings})` : ''}`,
      );
      result.textContent = [...lines, '', tried.text ?? text.refused].join('\n');
    } catch (error) {
      fault.textContent = error.message;
    }
  });
  return form;
}

function make(name, ...content) {
  const element = document.createElement(name);
  element.append(...content);
  return element;
}

/** The page of guardrails, as browsers load it: no build, no library. Texts are set as text, never as HTML. */

const texts = {
  en: {
    check: 'Check',
    stage: 'Stage',
    calls: 'Calls',
    hits: 'Findings in calls',
    time: 'Milliseconds a call',
    none: 'No call was checked in the last 7 days.',
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
  const { checks, policies } = await console.request('GET', '/admin/guardrails');
  place.append(ratesTable(checks, text));
  if (console.role === 'operator' && policies.length > 0) place.append(trial(policies, text, console));
}

function ratesTable(checks, text) {
  if (checks.length === 0) return make('p', text.none);
  const names = [text.check, text.stage, text.calls, ...Object.values(text.verdicts), text.time];
  const head = make('tr', ...names.map((name) => make('th', name)));
  const rows = checks.map(({ check, stage, calls, verdicts, milliseconds }) => {
    const counts = Object.keys(text.verdicts).map((verdict) => share(verdicts[verdict] ?? 0, calls));
    const cells = [check, text.stages[stage] ?? stage, String(calls), ...counts, String(Math.round(milliseconds))];
    return make('tr', ...cells.map((cell) => make('td', cell)));
  });
  return make('table', make('thead', head), make('tbody', ...rows));
}

const share = (count, calls) => (count === 0 ? '0' : `${count} (${Math.round((100 * count) / calls)} %)`);

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

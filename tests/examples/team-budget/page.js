/** The page of the budgets, as browsers load it. Names of teams are set as text, never as HTML. */

const texts = {
  en: { team: 'Team', spent: 'Spent', held: 'Held', limit: 'Budget', none: 'No team has spent anything this month.' },
  de: {
    team: 'Team',
    spent: 'Ausgegeben',
    held: 'Vorgemerkt',
    limit: 'Budget',
    none: 'In diesem Monat keine Ausgaben.',
  },
};

/** @param {HTMLElement} place @param {import('model-gateway/domain').AdminPageConsole} console */
export async function mount(place, console) {
  const text = texts[console.language] ?? texts.en;
  const { rows } = await console.request('GET', '/pages/team-budget');
  const names = ['team', 'spent', 'held', 'limit'];
  const line = (cell, values) => make('tr', ...names.map((name) => make(cell, values[name] ?? '–')));
  const table = make('table', line('th', text), ...rows.map((row) => line('td', row)));
  place.append(rows.length === 0 ? make('p', text.none) : table);
}

function make(name, ...content) {
  const element = document.createElement(name);
  element.append(...content);
  return element;
}

/** The page of the notes, as browsers load it: no build, no library. What clients or operators wrote is set as text, never as HTML. */

const texts = {
  en: { model: 'Model', note: 'Note', save: 'Save', none: 'No notes yet.' },
  zh: { model: '模型', note: '备注', save: '保存', none: '还没有备注。' },
};

/** @param {HTMLElement} place @param {import('model-gateway/domain').AdminPageConsole} console */
export async function mount(place, console) {
  const text = texts[console.language] ?? texts.en;
  const table = make('table');
  const fault = make('p');
  fault.setAttribute('role', 'alert');

  async function show() {
    const { rows } = await console.request('GET', '/admin/notes');
    const head = make('tr', make('th', text.model), make('th', text.note));
    table.replaceChildren(head, ...rows.map((row) => make('tr', make('td', row.model), make('td', row.note))));
    if (rows.length === 0) table.replaceChildren(make('caption', text.none));
  }

  if (console.role === 'operator') {
    const model = make('input');
    const note = make('input');
    const form = make(
      'form',
      make('label', text.model, model),
      make('label', text.note, note),
      make('button', text.save),
    );
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      try {
        await console.request('POST', '/admin/notes', { model: model.value, note: note.value });
        fault.textContent = '';
        await show();
      } catch (error) {
        fault.textContent = error.message;
      }
    });
    place.append(form);
  }
  place.append(fault, table);
  await show();
}

function make(name, ...content) {
  const element = document.createElement(name);
  element.append(...content);
  return element;
}

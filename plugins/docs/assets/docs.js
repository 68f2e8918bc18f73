/** What pages do where scripts run: search while one types, copying of code, light and dark. All of it works without, or is not there. */
import { find } from './search.js';

const { body, documentElement: root } = document;

// ------------------------------------------------------------------------------------------------------------------ search

const form = document.querySelector('.search');
const field = form.querySelector('input');
const results = form.querySelector('.results');
let entries;

/** The index is loaded once, when somebody begins to type. */
const load = () =>
  (entries ??= fetch('/docs/search.json').then((answer) => {
    if (answer.ok) return answer.json();
    entries = undefined;
    throw new Error('no index');
  }));

async function show() {
  const text = field.value.trim();
  if (text === '') return hide();
  const found = find(await load(), text).slice(0, 8);
  if (field.value.trim() !== text) return;
  results.replaceChildren(...(found.length === 0 ? [noneOf(text)] : found.map(linkOf)));
  results.hidden = false;
}

function noneOf(text) {
  const line = document.createElement('p');
  line.textContent = body.dataset.none.replace('{text}', text);
  return line;
}

function linkOf([address, page, heading]) {
  const link = document.createElement('a');
  link.href = address;
  const small = document.createElement('small');
  small.textContent = page;
  link.append(heading || page, small);
  return link;
}

function hide() {
  results.hidden = true;
  results.replaceChildren();
}

field.addEventListener('focus', () => load().catch(() => undefined));
// Without an index the form still asks the gateway.
field.addEventListener('input', () => show().catch(hide));
form.addEventListener('keydown', (event) => {
  const links = [...results.querySelectorAll('a')];
  const at = links.indexOf(document.activeElement);
  if (event.key === 'Escape') {
    hide();
    field.focus();
  } else if (event.key === 'ArrowDown' && links.length > 0) {
    event.preventDefault();
    links[Math.min(at + 1, links.length - 1)].focus();
  } else if (event.key === 'ArrowUp' && at >= 0) {
    event.preventDefault();
    (at === 0 ? field : links[at - 1]).focus();
  }
});
document.addEventListener('click', (event) => {
  if (!form.contains(event.target)) hide();
});
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target.closest('input, textarea, select')) return;
  event.preventDefault();
  field.focus();
});

// -------------------------------------------------------------------------------------------------------------------- code

for (const figure of document.querySelectorAll('figure.code')) {
  const button = document.createElement('button');
  button.type = 'button';
  button.textContent = body.dataset.copy;
  button.addEventListener('click', async () => {
    await navigator.clipboard.writeText(figure.querySelector('code').textContent);
    button.textContent = body.dataset.copied;
    setTimeout(() => {
      button.textContent = body.dataset.copy;
    }, 1500);
  });
  if (navigator.clipboard !== undefined) figure.append(button);
}

// --------------------------------------------------------------------------------------------------------- light and dark

const scheme = document.querySelector('.scheme');
scheme.hidden = false;
scheme.addEventListener('click', () => {
  const isDark =
    (root.dataset.scheme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
  root.dataset.scheme = isDark ? 'light' : 'dark';
  try {
    localStorage.setItem('console-color-scheme', root.dataset.scheme);
  } catch {
    // Then it holds for this page.
  }
});

// -------------------------------------------------------------------------------------------------------------------- menu

const wide = matchMedia('(min-width: 900px)');
const pages = document.querySelector('details.pages');
const unfold = () => {
  pages.open = wide.matches;
};
wide.addEventListener('change', unfold);
unfold();

/**
 * The language of the pages, and its texts. English is TypeScript, which gives the keys their types, and always there. Any other language is a
 * folder with `client.json` and `operator.json` for i18next, named by its ISO 639-1 code: nothing else lists it, and it loads when it is chosen.
 */
import i18next, { type FormatterModule } from 'i18next';
import { initReactI18next } from 'react-i18next';
import { spokenValue } from '../parts/format.ts';
import en, { type English } from './en/index.ts';

declare module 'i18next' {
  interface CustomTypeOptions {
    defaultNS: 'translation';
    resources: { translation: English };
  }
}

const forAll = import.meta.glob<object>('./??/client.json', { import: 'default' });
const forOperators = import.meta.glob<object>(['./??/operator.json', './en/operator.ts'], { import: 'default' });

export type Language = string;
/** Codes, English first. */
export const languages: readonly Language[] = [
  'en',
  ...Object.keys(forAll).map((file) => file.slice('./'.length, -'/client.json'.length)),
];
/** The name of a language in that language. */
export const languageName = (code: Language): string =>
  new Intl.DisplayNames([code], { type: 'language' }).of(code) ?? code;

const keptUnder = 'console-language';
let withOperator = false;

/** Formats every value of every text, so that a number in a sentence is written as the reader writes it. */
const asReadersWrite: FormatterModule = {
  type: 'formatter',
  init: () => undefined,
  add: () => undefined,
  addCached: () => undefined,
  format: (value, _, language) => spokenValue(value, language ?? 'en') as string,
};

export async function startTexts(): Promise<void> {
  await i18next
    .use(initReactI18next)
    .use(asReadersWrite)
    .init({
      lng: 'en',
      fallbackLng: 'en',
      resources: { en: { translation: en } },
      interpolation: { escapeValue: false, alwaysFormat: true },
    });
  await speak(kept() ?? preferred(), false);
}

/** Changes the language, of dates and numbers too, and keeps the choice in this browser. */
export async function speak(language: Language, keep = true): Promise<void> {
  await load(language);
  await i18next.changeLanguage(language);
  document.documentElement.lang = language;
  if (keep) localStorage.setItem(keptUnder, language);
}

/** Brings the texts of the operator's pages, in this language and in every one that is chosen later. */
export async function speakToOperators(): Promise<void> {
  if (withOperator) return;
  withOperator = true;
  await Promise.all([...new Set(['en', i18next.language])].map(load));
}

async function load(language: Language): Promise<void> {
  const all = i18next.hasResourceBundle(language, 'translation') ? undefined : forAll[`./${language}/client.json`];
  const loaded = !withOperator || i18next.exists('operator.nav.monitor', { lng: language, fallbackLng: false });
  const file = `./${language}/operator.${language === 'en' ? 'ts' : 'json'}`;
  const [texts, operator] = await Promise.all([all?.(), loaded ? undefined : forOperators[file]?.()]);
  if (texts !== undefined) i18next.addResourceBundle(language, 'translation', texts, true);
  if (operator !== undefined) i18next.addResourceBundle(language, 'translation', { operator }, true);
}

function kept(): Language | undefined {
  const value = localStorage.getItem(keptUnder);
  return value !== null && languages.includes(value) ? value : undefined;
}

function preferred(): Language {
  return navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => languages.includes(tag)) ?? 'en';
}

/**
 * The language of the pages, and its texts. A language is a folder with
 * `index.ts` and `operator.ts`, named by its ISO 639-1 code: nothing else lists it. English is always there, others load when they are chosen.
 */
import i18next from 'i18next';
import { initReactI18next } from 'react-i18next';
import en, { type English } from './en.ts';

declare module 'i18next' {
  interface CustomTypeOptions {
    defaultNS: 'translation';
    resources: { translation: English };
  }
}

type Load = () => Promise<{ readonly default: object }>;
const others: Record<string, Load> = import.meta.glob<{ readonly default: object }>('./??/index.ts');
const forOperators: Record<string, Load> = import.meta.glob<{ readonly default: object }>('./??/operator.ts');

export type Language = string;
/** Codes, English first. */
export const languages: readonly Language[] = [
  'en',
  ...Object.keys(others).map((file) => file.slice('./'.length, -'/index.ts'.length)),
];
/** The name of a language in that language. */
export const languageName = (code: Language): string =>
  new Intl.DisplayNames([code], { type: 'language' }).of(code) ?? code;

const keptUnder = 'console-language';
let withOperator = false;

export async function startTexts(): Promise<void> {
  await i18next.use(initReactI18next).init({
    lng: 'en',
    fallbackLng: 'en',
    resources: { en: { translation: en } },
    interpolation: { escapeValue: false },
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
  const wanted = [
    ...(i18next.hasResourceBundle(language, 'translation') ? [] : [others[`./${language}/index.ts`]]),
    ...(withOperator && !i18next.exists('operator.nav.monitor', { lng: language, fallbackLng: false })
      ? [forOperators[`./${language}/operator.ts`]]
      : []),
  ];
  const [first, second] = await Promise.all(wanted.map((file) => file?.()));
  for (const part of [first, second]) {
    if (part === undefined) continue;
    const texts = 'nav' in part.default ? { operator: part.default } : part.default;
    i18next.addResourceBundle(language, 'translation', texts, true);
  }
}

function kept(): Language | undefined {
  const value = localStorage.getItem(keptUnder);
  return value !== null && languages.includes(value) ? value : undefined;
}

function preferred(): Language {
  return navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => languages.includes(tag)) ?? 'en';
}

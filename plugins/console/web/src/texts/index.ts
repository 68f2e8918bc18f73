/** Which language is spoken, and the typed function that gives its words. English is always there, others load when chosen. */
import i18next from 'i18next';
import { initReactI18next } from 'react-i18next';
import { en } from './en.ts';

declare module 'i18next' {
  interface CustomTypeOptions {
    defaultNS: 'translation';
    resources: { translation: typeof en };
  }
}

/** Languages by the name that they give themselves. */
export const languages = { en: 'English', zh: '中文' } as const;
export type Language = keyof typeof languages;

const others: Record<Exclude<Language, 'en'>, () => Promise<object>> = {
  zh: async () => (await import('./zh.ts')).zh,
};
const keptUnder = 'console-language';

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
  if (language !== 'en' && !i18next.hasResourceBundle(language, 'translation'))
    i18next.addResourceBundle(language, 'translation', await others[language]());
  await i18next.changeLanguage(language);
  document.documentElement.lang = language;
  if (keep) localStorage.setItem(keptUnder, language);
}

function kept(): Language | undefined {
  const value = localStorage.getItem(keptUnder);
  return value !== null && value in languages ? (value as Language) : undefined;
}

function preferred(): Language {
  const first = navigator.languages.map((tag) => tag.slice(0, 2)).find((tag) => tag in languages);
  return (first as Language | undefined) ?? 'en';
}

/** Texts that plugins bring along. */
import i18next from 'i18next';

/** A plugin's own text in the reader's language, else in English. */
export const inLanguage = (text: Readonly<Record<string, string>>): string =>
  (Object.hasOwn(text, i18next.language) ? text[i18next.language] : text['en']) ?? '';

/** Words of the API that are known in every language; others are shown as they come. */
import { useTranslation } from 'react-i18next';

const modalities = ['text', 'image', 'document', 'audio', 'video'] as const;
const grantKinds = ['plan', 'top-up', 'promotion', 'code', 'refund', 'credit_line'] as const;

const isOneOf = <Word extends string>(words: readonly Word[], word: string): word is Word =>
  (words as readonly string[]).includes(word);

/** Inputs or outputs of a model, as a list. */
export function useModalities(): (names: readonly string[]) => string {
  const { t, i18n } = useTranslation();
  return (names) => {
    const words = names.map((name) => (isOneOf(modalities, name) ? t(`shell.modality.${name}`) : name));
    return words.length === 0
      ? '–'
      : new Intl.ListFormat(i18n.language, { type: 'unit', style: 'short' }).format(words);
  };
}

/** The source of a grant. */
export function useGrantKind(): (kind: string) => string {
  const { t } = useTranslation();
  return (kind) => (isOneOf(grantKinds, kind) ? t(`shell.grantKind.${kind}`) : kind);
}

/** Names of the classes that are priced. */
export function useClassName(): (name: string) => string {
  const { t, i18n } = useTranslation();
  return (name) =>
    i18n.exists(`client.models.classes.${name}`) ? t(`client.models.classes.${name as 'input'}`) : name;
}

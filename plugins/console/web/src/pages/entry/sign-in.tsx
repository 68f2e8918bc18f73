/** Signing in. */
import { useTranslation } from 'react-i18next';

export default function SignIn() {
  const { t } = useTranslation();
  return <h1>{t('entry.signIn.title')}</h1>;
}

/** The first page of a client. */
import { useTranslation } from 'react-i18next';
import { Money } from '../../parts/money.tsx';
import { Page, Panel } from '../../parts/page.tsx';
import { Stat, StatRow } from '../../parts/stat.tsx';

export default function Home() {
  const { t } = useTranslation();
  return (
    <Page title={t('client.home.title')}>
      <StatRow>
        <Stat label={t('shell.balance')} value={<Money of="12.345678" />} to="/wallet" />
      </StatRow>
      <Panel title={t('client.home.title')}>…</Panel>
    </Page>
  );
}

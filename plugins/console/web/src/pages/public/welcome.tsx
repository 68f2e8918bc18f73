/** The first page that a stranger sees: what this gateway is, its models with prices, and how a call is made. */
import { Button, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { blocksOf, clientPrograms, keyPlaceholder } from '../../../../../../core/tools/client-programs.ts';
import { publicModelsQuery, statusQuery } from '../../api/models.ts';
import { useInfo } from '../../api/session.ts';
import type { Info } from '../../api/types.ts';
import { CodeBlock } from '../../parts/code-block.tsx';
import { ModelSquare } from '../../parts/model-square.tsx';
import { Panel } from '../../parts/page.tsx';
import { ErrorState } from '../../parts/states.tsx';
import { PublicFrame } from './public-frame.tsx';

export default function Welcome() {
  const { t } = useTranslation();
  const info = useInfo();
  const models = useQuery(publicModelsQuery);
  const status = useQuery({ ...statusQuery, enabled: info?.public.status === true });
  const first = models.data?.rows.find(({ kind }) => kind === 'chat')?.id ?? 'model';
  const filling = { base: location.origin, key: keyPlaceholder, model: first, name: info?.gateway ?? '' };
  return (
    <PublicFrame title={t('entry.welcome.title')}>
      <div className="hero">
        <div>
          <Title order={1} className="hero-title">
            {t('entry.welcome.headline', { count: models.data?.rows.length ?? 0 })}
          </Title>
          <Text c="dimmed" mt="sm" fz="lg">
            {t('entry.welcome.intro')}
          </Text>
          <WaysIn info={info} />
        </div>
        <Panel title={t('entry.welcome.call')}>
          <CodeBlock text={blocksOf(clientPrograms.get('curl')!, filling)[0]!.text} label="curl" />
        </Panel>
      </div>
      <Stack gap="sm" mt="xl">
        <Title order={2} fz="lg">
          {t('shell.word.models')}
        </Title>
        {models.isError ? (
          <ErrorState error={models.error} onRetry={() => void models.refetch()} />
        ) : (
          <ModelSquare models={models.data?.rows} status={status.data} />
        )}
      </Stack>
    </PublicFrame>
  );
}

function WaysIn({ info }: { readonly info: Info | undefined }) {
  const { t } = useTranslation();
  return (
    <Group mt="lg" gap="xs">
      {info?.signUp === 'open' && (
        <Button size="md" renderRoot={(props) => <Link {...props} to="/sign-up" />}>
          {t('entry.welcome.begin')}
        </Button>
      )}
      <Button size="md" variant="default" renderRoot={(props) => <Link {...props} to="/sign-in" />}>
        {t('entry.signIn.title')}
      </Button>
    </Group>
  );
}

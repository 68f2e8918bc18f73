/** One call from end to end: the parts of its cost, its duration, its attempts, its dropped parameters. */
import { Alert, Badge, Code, Drawer, Group, List, Stack, Text, Title } from '@mantine/core';
import { IconInfoCircle } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import { useTranslation } from 'react-i18next';
import type { Charge, RequestStory } from '../../api/types.ts';
import { CopyButton } from '../../parts/copy-button.tsx';
import { FactList } from '../../parts/fact-list.tsx';
import { bytesText, durationText, exactMoneyText, localDecimals, localFormula } from '../../parts/format.ts';
import { Money } from '../../parts/money.tsx';
import { ErrorState, Waiting } from '../../parts/states.tsx';
import { Time } from '../../parts/time.tsx';
import { ReplayLink } from './replay-link.tsx';
import { ResultBadge } from './result-badge.tsx';
import { useStory } from './use-story.ts';

export function RequestDrawer({ id, onClose }: { readonly id: string | undefined; readonly onClose: () => void }) {
  const { t } = useTranslation();
  const story = useStory(id);
  return (
    <Drawer opened={id !== undefined} onClose={onClose} title={t('client.usage.request')}>
      {story.isPending && <Waiting />}
      {story.isError && <ErrorState error={story.error} onRetry={() => void story.refetch()} />}
      {story.data !== undefined && <Story story={story.data} />}
    </Drawer>
  );
}

function Story({ story }: { readonly story: RequestStory }) {
  const { t } = useTranslation();
  const { request, charge, dropped, attempts, bodyKept } = story;
  return (
    <Stack gap="lg">
      <Group gap="xs">
        <ResultBadge row={request} />
        <Text fw={600}>{request.model ?? request.operation}</Text>
        <Text c="dimmed" fz="sm" component="div">
          <Time at={request.receivedAt} />
        </Text>
      </Group>
      <Part title={t('client.usage.formula')} hint={t('client.usage.formulaHint')}>
        {charge === null ? <Text fz="sm">{t('client.usage.noCharge')}</Text> : <Formula charge={charge} />}
      </Part>
      <Part title={t('client.usage.timings')}>
        <Facts story={story} />
      </Part>
      {dropped.length > 0 && (
        <Part title={t('client.usage.dropped')} hint={t('client.usage.droppedHint')}>
          <Group gap={6}>
            {dropped.map((name) => (
              <Code key={name}>{name}</Code>
            ))}
          </Group>
        </Part>
      )}
      {attempts.length > 1 && (
        <Part title={t('client.usage.attempts')}>
          <List size="sm" spacing={4}>
            {attempts.map(({ number, result, status, durationMs }) => (
              <List.Item key={number}>
                {t('client.usage.attempt', { number })} {t(`client.usage.attemptResult.${result}`)}
                {status !== null && ` (${status})`}
                {durationMs !== null && ` · ${durationText(durationMs)}`}
              </List.Item>
            ))}
          </List>
        </Part>
      )}
      {bodyKept && <ReplayLink id={request.id} />}
    </Stack>
  );
}

function Part({ title, hint, children }: { title: string; hint?: string; children: ReactNode }) {
  return (
    <section>
      <Title order={3} fz="sm">
        {title}
      </Title>
      {hint !== undefined && (
        <Text fz="xs" c="dimmed">
          {hint}
        </Text>
      )}
      <div className="part-body">{children}</div>
    </section>
  );
}

function Formula({ charge }: { readonly charge: Charge }) {
  const { t, i18n } = useTranslation();
  return (
    <Stack gap="sm">
      <div className="formula" data-testid="formula">
        <Text component="div" ff="monospace" fz="sm" className="formula-sum">
          {localFormula(charge.formula, i18n.language)}
        </Text>
        <Text component="div" fw={650} fz="lg" className="number">
          = {exactMoneyText(charge.cost, i18n.language)}
        </Text>
      </div>
      {charge.estimated && (
        <Alert variant="light" color="yellow" py="xs" icon={<IconInfoCircle size={16} />}>
          {t('client.usage.estimated')}
        </Alert>
      )}
      <Group gap={6}>
        <Badge variant="default" tt="none" radius="sm" fw={500}>
          {t('shell.word.ratio')} {localDecimals(charge.ratio, i18n.language)}
        </Badge>
        <Badge variant="default" tt="none" radius="sm" fw={500}>
          {t('client.usage.priceVersion')} {charge.priceVersion}
        </Badge>
        {charge.tier !== null && charge.tier !== '' && (
          <Badge variant="default" tt="none" radius="sm" fw={500}>
            {t('client.usage.tier')} {charge.tier}
          </Badge>
        )}
        {/[1-9]/.test(charge.refunded) && (
          <Badge variant="light" color="teal" tt="none" radius="sm">
            {t('client.usage.refunded')} <Money of={charge.refunded} exact />
          </Badge>
        )}
      </Group>
    </Stack>
  );
}

function Facts({ story: { request } }: { readonly story: RequestStory }) {
  const { t, i18n } = useTranslation();
  const facts: readonly (readonly [string, ReactNode])[] = [
    [t('shell.word.firstByte'), durationText(request.firstByteMs)],
    [t('shell.word.wholeAnswer'), durationText(request.totalMs)],
    [
      t('client.usage.bytes'),
      `${bytesText(request.bytesIn, i18n.language)} / ${bytesText(request.bytesOut, i18n.language)}`,
    ],
    [
      t('shell.word.protocol'),
      `${request.protocol ?? '–'}, ${request.streamed ? t('client.usage.streamed') : t('client.usage.whole')}`,
    ],
    ...(request.servedBy === null ? [] : [[t('client.usage.servedBy'), request.servedBy] as const]),
    ...(request.finish === null ? [] : [[t('client.usage.finish'), request.finish] as const]),
    ...(request.errorKind === null
      ? []
      : [[t('shell.word.error'), <Refusal key="error" request={request} />] as const]),
    [
      t('client.usage.requestId'),
      <Group key="id" gap={4} wrap="nowrap">
        <Code className="breaks">{request.id}</Code>
        <CopyButton text={request.id} />
      </Group>,
    ],
  ];
  return <FactList facts={facts} />;
}

const explained = ['region_unavailable', 'retention_none'] as const;

/** Its kind and code, and in words what only the terms of the account and the key explain. */
function Refusal({ request: { errorKind, errorCode } }: Pick<RequestStory, 'request'>) {
  const { t } = useTranslation();
  const code = explained.find((one) => one === errorCode);
  return (
    <>
      {[errorKind, errorCode].filter(Boolean).join(' · ')}
      {code !== undefined && (
        <Text fz="xs" component="div">
          {t(`client.refusal.${code}`)}
        </Text>
      )}
    </>
  );
}

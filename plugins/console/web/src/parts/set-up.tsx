/** How each kind of client is set up for this gateway: pick the client and the model, copy, call. */
import { Button, Chip, Group, Select, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { modelsQuery } from '../api/models.ts';
import { useMe } from '../api/session.ts';
import { allTools, type Filling, fill, keyPlaceholder, type Tool } from '../snippets/index.ts';
import { templateOf } from '../snippets/templates.ts';
import { CodeBlock } from './code-block.tsx';

interface SetUpProps {
  /** The key, while it is known. */
  readonly secret?: string;
}

export default function SetUp({ secret }: SetUpProps) {
  const { t } = useTranslation();
  const [tool, setTool] = useState<Tool>(allTools[0]!);
  const [chosen, setChosen] = useState<string | null>(null);
  const models = useChatModels();
  const model = chosen ?? models[0] ?? 'model';
  const { gateway } = useMe();
  const filling = { base: gateway.origin, key: secret ?? keyPlaceholder, model, name: gateway.name };
  return (
    <Stack gap="sm">
      <Chip.Group value={tool.id} onChange={(id) => setTool(allTools.find((one) => one.id === id) ?? tool)}>
        <Group gap={6} role="radiogroup" aria-label={t('client.setUp.client')}>
          {allTools.map(({ id, name }) => (
            <Chip key={id} value={id} size="xs" variant="light" radius="md">
              {name}
            </Chip>
          ))}
        </Group>
      </Chip.Group>
      {models.length > 1 && (
        <Select
          size="xs"
          maw={280}
          label={t('client.setUp.model')}
          data={models}
          value={model}
          onChange={setChosen}
          searchable
          allowDeselect={false}
        />
      )}
      {tool.files
        .filter(({ language }) => language !== 'link')
        .map(({ template, saveAs }) => (
          <CodeBlock key={template} text={fill(templateOf(template), filling)} title={saveAs} label={tool.name} />
        ))}
      <Links tool={tool} filling={filling} known={secret !== undefined} />
      {secret === undefined && (
        <Text fz="xs" c="dimmed">
          {t('client.setUp.keyHint', { placeholder: keyPlaceholder })}
        </Text>
      )}
    </Stack>
  );
}

interface LinksProps {
  readonly tool: Tool;
  readonly filling: Filling;
  /** Whether the key is: a link without it would set up nothing. */
  readonly known: boolean;
}

/** Opens the program with everything filled in. */
function Links({ tool, filling, known }: LinksProps) {
  const { t } = useTranslation();
  const links = tool.files.filter(({ language }) => language === 'link');
  if (links.length === 0) return null;
  if (!known)
    return (
      <Text fz="sm" c="dimmed">
        {t('client.setUp.linkHint', { tool: tool.name })}
      </Text>
    );
  return (
    <Group gap="xs">
      {links.map(({ template, language, saveAs }) => (
        <Button
          key={template}
          component="a"
          size="xs"
          variant="default"
          href={fill(templateOf(template), filling, language)}
        >
          {t('client.setUp.open', { tool: tool.name, app: saveAs })}
        </Button>
      ))}
    </Group>
  );
}

/** Ids of chat models that this person's plan has. */
function useChatModels(): readonly string[] {
  const { data } = useQuery(modelsQuery);
  return (data?.rows ?? []).filter(({ kind, allowed }) => kind === 'chat' && allowed).map(({ id }) => id);
}

"""Words by which the rules know what a name stands for and what a verb says."""

from __future__ import annotations

PERSON = "person"
ORGANIZATION = "organization"
TECHNOLOGY = "technology"
FILE = "file"
URL = "url"
EMAIL = "email"
DATE = "date"
PULL_REQUEST = "pull_request"
ISSUE = "issue"
IDENTIFIER = "identifier"
CONCEPT = "concept"

ENTITY_TYPES = (
    PERSON,
    ORGANIZATION,
    TECHNOLOGY,
    FILE,
    URL,
    EMAIL,
    DATE,
    PULL_REQUEST,
    ISSUE,
    IDENTIFIER,
    CONCEPT,
)

_FIRST_NAMES = """
aaron abdul abigail adam adrian ahmed aisha akira alan albert alejandro alex alexander alexandra alexei ali alice
alicia alina amanda amelia amina amir amy ana andrea andreas andrei andrew andy angela anita ann anna anne annika
anthony antonio arjun arthur astrid barbara beatriz ben benjamin bernd betty bill bob boris brandon brian bruno
carl carla carlos carmen carol caroline catherine charles charlie charlotte chen chloe chris christian christina
christine christopher claire clara claudia cynthia dan daniel daniela dave david deborah deepak dennis diana diego
dmitri donald donna dorothy douglas edward elena eli elias elizabeth ella emily emma eric erik ethan eva evan eve
fatima felix fiona francesca francis francisco frank fred gabriel gary george gerald grace greg gregory hannah
hans harold harry hassan heather heidi helen helena henry hiroshi hugo ian ibrahim igor ines ingrid irene isabel
isabella ivan ivy jack jacob jake james jamal jan jana jane janet jason javier jean jeff jeffrey jen jennifer
jeremy jerry jessica jim joan joe joel johan johannes john jonas jonathan jordi jorge jose joseph joshua juan
judith julia julian julie jun justin kai karen karl kate katherine kathleen kavita keiko keith kelly ken kenji
kenneth kevin kim klaus kumar kyle lakshmi lara larry lars laura lauren leila lena leo leon leonardo li liam lily
linda lisa louis luca lucas lucia lucy luis luke magnus mallory manuel marco marcus margaret maria marie marina
mario mark markus marta martha martin mary mateo matt matthew matthias max maya megan mei mia michael michelle
miguel mike mikhail milan mina miriam mohamed mohammed monica nadia nancy natalia natalie nathan neha nicholas
nick nicole nikolai nina noah noor nora oleg olga oliver olivia omar oscar otto pablo pamela patricia patrick paul
paula pavel pedro peggy peter petra philip pierre priya rachel rafael rahul raj ralph ramon raymond rebecca ricardo
richard rita rob robert roberto robin roger rohan roland rosa rose ruth ryan said sakura sam samantha samir samuel
sandra sanjay sara sarah sasha scott sean sebastian sergei sergio sharon shreya simon sofia sonia sophia sophie
stefan stephanie stephen steve steven sunil susan susanne suzanne sven sybil takeshi tanya tara teresa thomas tim
timothy tina tobias todd tom tomas trent ursula valentina vanessa vera victor victoria vikram vincent virginia
vladimir walter wei wendy will william wolfgang xavier xiao yan yasmin yolanda yuki yusuf yvonne zach zoe
"""
FIRST_NAMES = frozenset(_FIRST_NAMES.split())

_KNOWN_ORGANIZATIONS = """
google microsoft openai anthropic amazon apple meta facebook netflix nvidia intel ibm oracle salesforce uber
airbnb stripe shopify spotify samsung siemens sap bosch tesla spacex nasa cern deepmind mozilla adobe cisco
"""
KNOWN_ORGANIZATIONS = frozenset(_KNOWN_ORGANIZATIONS.split())

ORGANIZATION_ENDINGS = (
    "Corp|Corporation|Inc|Incorporated|Ltd|Limited|LLC|LLP|PLC|GmbH|AG|SE|KG|BV|SA|SpA|Oy|AB|Co|Company|Companies|"
    "Group|Holding|Holdings|Partners|Labs|Laboratories|Laboratory|Foundation|Institute|University|College|School|"
    "Bank|Capital|Ventures|Systems|Technologies|Solutions|Industries|Studios|Agency|Ministry|Department|Council|"
    "Consulting|Associates|Networks|Robotics|Airlines|Hospital|Commission|Union|Parliament|Committee|Authority|Association|"
    "Organization|Organisation|Federation|Motors|Airways|Pharmaceuticals|Museum"
)
OFFICES = (
    "University|Bank|Ministry|Institute|Department|Office|Bureau|Chamber|Museum|Academy|Agency|Center|Centre|Council"
)

# What "of" and "for" may follow inside of a name: Bank of England, Center for Robotics.
_INSTITUTIONS = """
academy agency association authority bank board bureau center centre chamber church city college commission council
court department faculty federation foundation government group guild house institute kingdom league library ministry
museum office order organisation organization parliament port republic school society state union university
"""
INSTITUTIONS = frozenset(_INSTITUTIONS.split())

TITLES = (
    "CEO|CTO|CFO|COO|CIO|CISO|CMO|CPO|[ES]?VP|(?:[Cc]hief|[Mm]anaging|[Vv]ice|[Ee]xecutive) [\\w ]{0,30}?"
    "(?:[Oo]fficer|[Dd]irector|[Pp]resident)|[Cc]o-?[Ff]ounder|[Pp]resident|[Dd]irector|[Ff]ounder|[Cc]hair(?:man|woman|person)?|"
    "[Hh]ead|[Ll]ead|[Mm]anager|[Oo]wner|[Ee]ngineer|[Dd]eveloper|[Dd]esigner|[Aa]nalyst|[Aa]rchitect|[Rr]esearcher|"
    "[Ss]cientist|[Pp]rofessor|[Cc]onsultant|[Tt]ester|[Ii]ntern|[Pp]artner|[Ss]ecretary|[Ss]pokes(?:man|woman|person)"
)

# What somebody is head of without working there.
_DEPARTMENTS = """
accounting analytics business communications compliance content data design development engineering finance growth hr
infrastructure it legal marketing operations people photography platform procurement product production quality
research sales security software staff strategy support technology
"""
DEPARTMENTS = frozenset(_DEPARTMENTS.split())

# Who is from there need not work for it.
_PLACES = """
africa america amsterdam argentina asia athens australia austria bangalore barcelona beijing belgium berlin boston
brazil brussels bulgaria california canada chicago chile china cologne copenhagen croatia denmark dublin england
europe finland florida france frankfurt geneva germany greece hamburg helsinki hungary india indonesia ireland israel
istanbul italy japan kenya korea lagos lisbon london luxembourg lyon madrid mexico milan montreal moscow mumbai munich
netherlands nigeria norway oslo paris poland portugal prague rome romania russia scotland seattle seoul serbia
shanghai singapore slovakia slovenia spain stockholm stuttgart sweden switzerland sydney taiwan tallinn texas tokyo
toronto turkey uk ukraine usa vienna vietnam warsaw washington zurich
"""
PLACES = frozenset(_PLACES.split())

TECHNOLOGIES = (
    "Python|JavaScript|TypeScript|Java|Kotlin|Swift|Rust|Golang|Ruby|PHP|Scala|Elixir|Erlang|Haskell|Perl|Bash|"
    "C\\+\\+|C#|F#|\\.NET|Node\\.js|Node|Deno|React Native|React|Vue(?:\\.js)?|Angular|Svelte|Next\\.js|Nuxt|Django|"
    "Flask|FastAPI|Rails|Spring Boot|Spring|Express|Laravel|Symfony|Tailwind|Bootstrap|Webpack|Vite|Babel|ESLint|"
    "PostgreSQL|Postgres|MySQL|MariaDB|SQLite|MongoDB|Redis|Valkey|Memcached|Cassandra|DynamoDB|Cosmos DB|CosmosDB|"
    "Elasticsearch|OpenSearch|Snowflake|BigQuery|ClickHouse|Neo4j|Qdrant|Pinecone|Chroma|Milvus|Weaviate|pgvector|FAISS|"
    "Kafka|RabbitMQ|NATS|Celery|Airflow|Spark|Hadoop|Flink|Docker|Kubernetes|Helm|Terraform|Ansible|Jenkins|GitHub "
    "Actions|GitHub|GitLab|Bitbucket|CircleCI|Travis|Nginx|Apache|HAProxy|Envoy|Istio|Prometheus|Grafana|Sentry|Datadog|"
    "AWS|Azure|GCP|Lambda|S3|EC2|CloudFront|Vercel|Heroku|Netlify|Cloudflare|Linux|Ubuntu|Debian|Windows|macOS|iOS|"
    "Android|Chrome|Firefox|Safari|Chromium|Selenium|Playwright|Cypress|Puppeteer|Jest|Mocha|Vitest|pytest|JUnit|"
    "OAuth|OIDC|SAML|JWT|GraphQL|gRPC|REST|WebSocket|MQTT|Protobuf|OpenAPI|Swagger|Postman|SQLAlchemy|Alembic|Pydantic|"
    "NumPy|pandas|PyTorch|TensorFlow|scikit-learn|LangChain|LlamaIndex|Ollama|Claude|ChatGPT|GPT-4|GPT|Gemini|Llama|"
    "Mistral|Slack|Jira|Confluence|Notion|Trello|Figma|Stripe API|Twilio|Git|npm|pip|Poetry|Maven|Gradle|Bazel|CMake|"
    "Stripe Checkout|HTTP/2|HTTP|HTTPS|TLS|SSH|DNS|CSS|HTML|SQL|JSON|YAML|XML|CSV|Markdown"
)

# What a sentence begins with, or a calendar and a heading write large, and is nobody's name.
_NO_NAMES = """
a about actually after all also although always an and another any anyway are as ask at based basically be because
before but by can check click cool could currently did do does done either else even every everyone everything
fine first for from furthermore give good great had has have he hello help her here hey hi his hmm how however i if
in instead into is it its just last later let lets like look make many maybe meanwhile might more most my never next
nice no nobody none not nothing now of oh ok okay on once one only open or other our out over perhaps please pr
probably quick read really regarding run said same see she should similarly since so some somebody someone something
sometimes sorry still such sure test thank thanks that the their them then there therefore these they think this
those though through thus to today tomorrow too try two under unfortunately until up use using very wait was we well
were what whatever when where whether which while who whoever whose why will with within without would yeah yes
yesterday yet you your january february march april may june july august september october november december monday
tuesday wednesday thursday friday saturday sunday dr mr mrs ms prof st todo fixme note
api ui ux db id url ci cd qa ceo cto cfo coo cio ciso cmo cpo vp svp evp pm am ok chief executive officer former founder
president director chairman
"""
NO_NAMES = frozenset(_NO_NAMES.split())

# Verb: what it says. The forms of regular verbs are made from it; those of others are given.
_REGULAR = {
    "review": "reviewed",
    "submit": "submitted",
    "merge": "merged",
    "open": "opened",
    "close": "closed",
    "approve": "approved",
    "reject": "rejected",
    "create": "created",
    "add": "added",
    "remove": "removed",
    "delete": "deleted",
    "fix": "fixed",
    "test": "tested",
    "deploy": "deployed",
    "release": "released",
    "report": "reported",
    "implement": "implemented",
    "refactor": "refactored",
    "update": "updated",
    "change": "changed",
    "replace": "replaced",
    "design": "designed",
    "develop": "developed",
    "publish": "published",
    "acquire": "acquired",
    "hire": "hired",
    "contact": "contacted",
    "email": "emailed",
    "mention": "mentioned",
    "ask": "asked",
    "help": "helped",
    "manage": "manages",
    "maintain": "maintains",
    "own": "owns",
    "contain": "contains",
    "include": "includes",
    "require": "requires",
    "call": "calls",
    "import": "imports",
    "use": "uses",
    "prefer": "prefers",
    "support": "supports",
    "like": "likes",
    "need": "needs",
    "cause": "causes",
    "break": "breaks",
    "block": "blocks",
    "sue": "sued",
    "fine": "fined",
    "fund": "funded",
    "launch": "launched",
    "introduce": "introduced",
    "interview": "interviewed",
    "promote": "promoted",
    "invite": "invited",
    "mentor": "mentors",
    "monitor": "monitors",
    "configure": "configured",
    "install": "installed",
    "join": "works_at",
    "invest in": "invested_in",
    "merge with": "merged_with",
    "partner with": "partners_with",
    "found": "founded",
    "visit": "visited",
    "work at": "works_at",
    "work for": "works_at",
    "work in": "works_at",
    "work with": "works_with",
    "work on": "works_on",
    "live in": "lives_in",
    "move to": "moved_to",
    "migrate to": "migrated_to",
    "switch to": "migrated_to",
    "depend on": "depends_on",
    "rely on": "depends_on",
    "listen on": "listens_on",
    "connect to": "connects_to",
    "talk to": "talked_to",
    "report to": "reports_to",
    "point to": "points_to",
    "belong to": "part_of",
}
_IRREGULAR = {
    "wrote": "wrote",
    "writes": "wrote",
    "written": "wrote",
    "writes to": "writes_to",
    "wrote to": "writes_to",
    "reads from": "reads_from",
    "built": "built",
    "builds": "built",
    "build": "built",
    "made": "made",
    "makes": "made",
    "sent": "sent",
    "sends": "sent",
    "led": "leads",
    "leads": "leads",
    "lead": "leads",
    "runs": "runs",
    "ran": "runs",
    "runs on": "runs_on",
    "ran on": "runs_on",
    "run on": "runs_on",
    "met": "met",
    "meets": "met",
    "knows": "knows",
    "know": "knows",
    "knew": "knows",
    "told": "told",
    "tells": "told",
    "taught": "taught",
    "teaches": "taught",
    "took over": "acquired",
    "takes over": "acquired",
    "taken over": "acquired",
    "bought": "acquired",
    "buys": "acquired",
    "sold": "sold",
    "left": "left",
    "leaves": "left",
    "found": "found",
    "finds": "found",
    "broke": "breaks",
    "broken": "breaks",
    "spoke to": "talked_to",
    "spoke with": "talked_to",
    "worked together with": "works_with",
    "is part of": "part_of",
    "is a part of": "part_of",
    "is in": "located_in",
    "is located in": "located_in",
    "is based in": "located_in",
    "is written in": "written_in",
    "was written in": "written_in",
    "is built with": "uses",
    "is built on": "uses",
    "is based on": "based_on",
    "is stored in": "stored_in",
    "is defined in": "defined_in",
    "lives in": "located_in",
    "is employed by": "works_at",
    "is employed at": "works_at",
    "is from": "works_at",
    "is with": "works_at",
    "is the CEO of": "leads",
    "is the CTO of": "leads",
    "is married to": "married_to",
    "is assigned to": "assigned_to",
    "was assigned to": "assigned_to",
    "reports to": "reports_to",
}


def _forms(verb: str) -> tuple[str, ...]:
    """Base form, third person, past."""
    head, _, preposition = verb.partition(" ")
    if head.endswith("e"):
        past = head + "d"
    elif head.endswith("y"):
        past = head[:-1] + "ied" if head[-2] not in "aeiou" else head + "ed"
    elif head == "submit":
        past = "submitted"
    else:
        past = head + "ed"
    third = head + ("es" if head.endswith(("x", "s", "sh", "ch")) else "s")
    if head.endswith("y") and head[-2] not in "aeiou":
        third = head[:-1] + "ies"
    return tuple(f"{form} {preposition}".strip() for form in (head, third, past))


BASE_FORMS = frozenset([*_REGULAR, "lead", "build", "know", "run on"])
"""What only several do: Alice and Bob work; of one, it is a noun or an order."""

VERBS: dict[str, str] = {
    **{form: relation for verb, relation in _REGULAR.items() for form in _forms(verb)},
    **_IRREGULAR,
}

HANDED_OVER = frozenset(
    ("assigned", "sent", "gave", "handed", "forwarded", "delegated", "transferred", "introduced", "presented", "sold")
)
"""What is done to something for somebody: assigned to, sent to."""
